"""A service, a consumer and an operator written with boto3: all they know is the line that `outbox local --json` prints,
and in the environment the variables that it prints for a shell.

Prints one JSON object with what they saw.
"""

import json
import sys
import time
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

stack = json.loads(sys.argv[1])
# one attempt: what the stack answers is what is seen
config = Config(retries={"total_max_attempts": 1})
rds = boto3.client("rds-data", config=config)
sqs = boto3.client("sqs", config=config)
sns = boto3.client("sns", config=config)
events = boto3.client("events", config=config)


def insert(sql, **parameters):
    return rds.execute_statement(
        resourceArn=stack["resourceArn"],
        secretArn=stack["secretArn"],
        database=stack["database"],
        sql=sql,
        parameters=[{"name": name, "value": {"stringValue": value}} for name, value in parameters.items()],
    )


def take(queue, seconds=30):
    """The body and attributes of the next message of a queue."""
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        answer = sqs.receive_message(
            QueueUrl=stack["queues"][queue], WaitTimeSeconds=1, MessageAttributeNames=["All"]
        )
        for message in answer.get("Messages", []):
            sqs.delete_message(QueueUrl=stack["queues"][queue], ReceiptHandle=message["ReceiptHandle"])
            return {"body": message["Body"], "attributes": sorted(message.get("MessageAttributes", {}))}
    return None


def faults(*rules):
    request = urllib.request.Request(
        stack["endpoint"] + "/_local/faults", json.dumps({"rules": rules}).encode(), method="PUT"
    )
    urllib.request.urlopen(request).read()


def error_of(call):
    """The code of the error that a call fails with."""
    try:
        call()
        return None
    except ClientError as error:
        return error.response["Error"]["Code"]
    except ConnectionClosedError:
        return "connection closed"


def batch(*bodies):
    return sqs.send_message_batch(
        QueueUrl=stack["queues"]["queue"],
        Entries=[{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)],
    )


seen = {}
seen["inserted"] = insert(
    "INSERT INTO outbox (event_type, payload) VALUES (:type, :payload)", type="OrderCreated", payload='{"orderId": 42}'
)["numberOfRecordsUpdated"]
seen["from the bus"] = take("bus-target")
insert(
    "INSERT INTO outbox (event_type, payload, destination) VALUES (:type, :payload, 'queue')",
    type="OrderPaid",
    payload='{"orderId": 43}',
)
seen["from the queue"] = take("queue")

throttle = {"kind": "throttle"}
faults(*[{"service": service, "times": 1, "fault": throttle} for service in ("rds-data", "sqs", "sns", "events")])
put = {"Source": "shop", "DetailType": "t", "Detail": "{}", "EventBusName": stack["eventBusName"]}
select = lambda: insert("SELECT 1 AS probe")
seen["throttled"] = [
    error_of(lambda: sqs.list_queues()),
    error_of(lambda: sns.publish(TopicArn=stack["topics"]["topic"], Message="x")),
    error_of(lambda: events.put_events(Entries=[put])),
]
faults({"service": "rds-data", "match": "probe", "fault": {"kind": "resuming", "seconds": 60}})
seen["resuming"] = error_of(select)
faults({"service": "rds-data", "match": "probe", "fault": {"kind": "reset"}})
seen["reset"] = error_of(select)
faults({"service": "rds-data", "match": "probe", "fault": {"kind": "drop-reply"}})
seen["reply dropped"] = error_of(select)
faults(
    {"service": "sqs", "match": "refused", "fault": {"kind": "entry-error", "code": "InternalError"}},
    {"service": "sqs", "match": "missing", "fault": {"kind": "entry-missing"}},
)
answer = batch("good", "refused", "missing")
seen["batch"] = {
    "successful": [entry["Id"] for entry in answer["Successful"]],
    "failed": [[entry["Id"], entry["Code"], entry["SenderFault"]] for entry in answer["Failed"]],
}
faults()
seen["delivered of the batch"] = [take("queue")["body"], take("queue", 1)]
seen["wrong queue"] = error_of(lambda: sqs.get_queue_url(QueueName="nowhere"))
seen["wrong sql"] = error_of(lambda: insert("SELEC 1"))
print(json.dumps(seen))
