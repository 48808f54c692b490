/** From the stack to a process that runs a handler: one invocation. */
export interface InvokeMessage {
  readonly requestId: string
  readonly event: unknown
  /** Epoch milliseconds at which the process is killed. */
  readonly deadlineMs: number
}

export interface FunctionError {
  readonly name: string
  readonly message: string
}

/** From that process to the stack. `value` is the result as JSON. */
export type HostMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'returned'; readonly requestId: string; readonly value: string }
  | { readonly kind: 'failed'; readonly requestId: string | null; readonly error: FunctionError }

/** The last line that an invocation writes to stdout: by then all its lines have been read. */
export const endLine = (requestId: string) => `END RequestId: ${requestId}`
