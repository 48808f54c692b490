// Who may import whom: ARCHITECTURE.md, "import rule". `npm run imports` checks it.
const only = (name, from, allowed, comment) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { pathNot: allowed },
})

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', comment: 'a cycle hides who owns what', from: {}, to: { circular: true } },
    only('core-is-pure', '^src/core/', ['^src/core/'], 'the domain imports nothing: no package, no node:*'),
    only('config', '^src/config/', ['^src/(config|core)/', '^node_modules/zod/'], 'settings: core and zod'),
    only(
      'telemetry',
      '^src/telemetry/',
      ['^src/(telemetry|core)/', '^node_modules/@aws-lambda-powertools/'],
      'catalogues: core; the adapter: powertools',
    ),
    only('store', '^src/store/', ['^src/(store|core)/', '^(node:)?(fs|url|path|crypto)'], 'the store speaks SQL through a port'),
    only(
      'data-api',
      '^src/data-api/',
      ['^src/(data-api|core)/', '^src/telemetry/', '^node_modules/@aws-sdk/client-rds-data/'],
      'the Data API adapter',
    ),
    only(
      'secrets',
      '^src/secrets/',
      ['^src/(secrets|core)/', '^(node:)?crypto', '^node_modules/@aws-sdk/client-secrets-manager/'],
      'secrets',
    ),
    only(
      'publishers',
      '^src/publishers/([^/]+)/',
      [
        '^src/core/',
        '^src/telemetry/',
        '^src/publishers/$1/',
        '^src/publishers/[^/]+\\.ts$',
        '^node_modules/@aws-sdk/client-(eventbridge|sqs|sns)/',
      ],
      'a publisher knows its own SDK client and no other publisher',
    ),
    only(
      'writer',
      '^src/writer/',
      ['^src/(writer|core|store|data-api)/', '^(node:)?crypto', '^node_modules/@aws-sdk/client-rds-data/'],
      'the writer stays light',
    ),
    only('inbox', '^src/inbox/', ['^src/(inbox|core|store|data-api)/'], 'the inbox stays light'),
    {
      name: 'local-is-for-laptops',
      severity: 'error',
      comment: 'nothing that runs in an account loads the local stack; the CLI does it lazily',
      from: { path: '^(src|lambdas|lib)/', pathNot: ['^src/local/', '^src/cli/(local|demo)'] },
      to: { path: '^src/local/' },
    },
    {
      name: 'cdk-only-in-lib',
      severity: 'error',
      comment: 'writer, inbox and handlers must not pull in the CDK',
      from: { pathNot: ['^lib/', '^bin/app\\.ts$', '^test/infra/'] },
      to: { path: '^node_modules/(aws-cdk-lib|constructs|cdk-nag)/' },
    },
    only(
      'lib',
      '^lib/',
      ['^lib/', '^src/(config|telemetry|core)/', '^node_modules/(aws-cdk-lib|constructs|zod|cdk-nag)/', '^(node:)?(fs|path|url)'],
      'infrastructure takes handlers by path only',
    ),
    {
      name: 'nothing-imports-tests',
      severity: 'error',
      comment: 'tests, benches and examples are leaves',
      from: { path: '^(src|lib|lambdas|bin)/' },
      to: { path: '^(test|bench|chaos|examples|scripts)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.json'],
    },
  },
}
