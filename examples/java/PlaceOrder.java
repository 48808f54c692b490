import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import javax.sql.DataSource;

/** JDBC: the order and its event in one transaction. With Spring, @Transactional around the same two inserts. */
public final class PlaceOrder {
  private final DataSource dataSource;

  public PlaceOrder(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /** @param payload JSON text, e.g. from Jackson's writeValueAsString; setString is enough, no cast and no PGobject. */
  public void place(long orderId, long customerId, String payload) throws SQLException {
    try (Connection connection = dataSource.getConnection()) {
      connection.setAutoCommit(false);
      try (PreparedStatement order = connection.prepareStatement("INSERT INTO orders (id, customer_id) VALUES (?, ?)");
          PreparedStatement event =
              connection.prepareStatement(
                  "INSERT INTO outbox (event_type, aggregate_id, ordering_key, payload) VALUES (?, ?, ?, ?)")) {
        order.setLong(1, orderId);
        order.setLong(2, customerId);
        order.executeUpdate();

        event.setString(1, "OrderCreated");
        event.setString(2, "order-" + orderId);
        event.setString(3, "customer-" + customerId);
        event.setString(4, payload);
        event.executeUpdate();

        connection.commit();
      } catch (SQLException | RuntimeException error) {
        connection.rollback(); // the event goes with the order
        throw error;
      }
    }
  }
}
