/** A request as the local endpoint hands it to one of the services behind it: read whole, never streamed. */
export interface ServiceRequest {
  readonly method: string
  /** Path with query string. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface ServiceResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

/** One AWS service behind the local endpoint. */
export interface LocalService {
  handle(request: ServiceRequest): Promise<ServiceResponse>
  stop(): Promise<void>
}
