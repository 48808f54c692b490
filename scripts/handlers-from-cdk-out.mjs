// Collects the handlers of a synthesised app, as they would be uploaded, for the local stack to run in place of dist/lambdas:
//   node scripts/handlers-from-cdk-out.mjs cdk.out DIRECTORY && OUTBOX_HANDLERS=DIRECTORY ...
// DIRECTORY/<handler> leads to the asset of that function.
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import path from 'node:path'

const [assembly, directory] = process.argv.slice(2).map((one) => path.resolve(one))
if (directory === undefined) throw new Error('give the directory that cdk synth wrote, and a new one for the handlers')

await mkdir(directory, { recursive: true })
const found = []
for (const file of await readdir(assembly)) {
  if (!file.endsWith('.template.json')) continue
  const { Resources } = JSON.parse(await readFile(path.join(assembly, file), 'utf8'))
  for (const { Type, Metadata } of Object.values(Resources)) {
    // <stack>/Outbox/Relay/Function/Resource
    const [handler, leaf] = (Metadata?.['aws:cdk:path'] ?? '').split('/').slice(-3)
    if (Type !== 'AWS::Lambda::Function' || leaf !== 'Function') continue
    await symlink(path.resolve(assembly, Metadata['aws:asset:path']), path.join(directory, handler.toLowerCase()))
    found.push(handler.toLowerCase())
  }
}
if (found.length === 0) throw new Error(`${assembly} has no function of ours`)
console.log(`handlers of ${assembly}: ${found.sort().join(', ')}`)
