// Loaded into a relay's process before anything else: its clock is wrong by OUTBOX_CHAOS_CLOCK_SHIFT_MS, and so is the deadline
// that its runtime gives it, as on a machine whose clock is wrong. What time has passed stays right.
const shiftMs = Number(process.env['OUTBOX_CHAOS_CLOCK_SHIFT_MS'] ?? 0)
const RightDate = Date
const now = () => RightDate.now() + shiftMs

globalThis.Date = new Proxy(RightDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RightDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})

process.prependListener('message', (message) => {
  if (typeof message?.deadlineMs === 'number') message.deadlineMs += shiftMs
})
