import { ServiceError } from '../service-error.js'

/** One version of a secret: its text, and the labels that say which one it is to a reader. */
export interface SecretVersion {
  readonly id: string
  readonly text: string
  readonly stages: ReadonlySet<string>
}

/** A secret's versions. A label is on one version at a time. */
export class SecretVersions {
  #versions: readonly SecretVersion[] = []

  /** By id, label or both; without either the one that is current. */
  find({ id, stage }: { readonly id?: string | undefined; readonly stage?: string | undefined }): SecretVersion {
    const wanted = stage ?? (id === undefined ? 'AWSCURRENT' : undefined)
    const found = this.#versions.find(
      (one) => (id === undefined || one.id === id) && (wanted === undefined || one.stages.has(wanted)),
    )
    if (found !== undefined) return found
    const by = wanted === undefined ? `VersionId: ${String(id)}` : `staging label: ${wanted}`
    throw new ServiceError('ResourceNotFoundException', `Secrets Manager can't find the specified secret value for ${by}`)
  }

  /** The same version again changes nothing; another text under its id is refused. */
  put(id: string, text: string, stages: readonly string[]): SecretVersion {
    const known = this.#versions.find((one) => one.id === id)
    if (known !== undefined && known.text !== text)
      throw new ServiceError(
        'ResourceExistsException',
        `You can't modify an existing version of the secret: a version with the ClientRequestToken ${id} already exists.`,
      )
    if (known === undefined) this.#versions = [...this.#versions, { id, text, stages: new Set() }]
    for (const stage of stages) this.move(stage, id)
    return this.find({ id })
  }

  /** Who was current is previous from then on. Versions without any label are gone. */
  move(stage: string, to: string): void {
    const { id: target } = this.find({ id: to })
    const left = this.#versions.find((one) => one.stages.has(stage) && one.id !== target)
    this.#label(stage, target)
    if (stage === 'AWSCURRENT' && left !== undefined) this.#label('AWSPREVIOUS', left.id)
    this.#versions = this.#versions.filter(({ stages }) => stages.size > 0)
  }

  remove(stage: string, from: string): void {
    this.#versions = this.#versions.map((one) =>
      one.id === from ? { ...one, stages: new Set([...one.stages].filter((other) => other !== stage)) } : one,
    )
  }

  /** Ids with their labels. */
  list(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(this.#versions.map(({ id, stages }) => [id, [...stages].sort()]))
  }

  #label(stage: string, id: string): void {
    this.#versions = this.#versions.map((one) => {
      const stages = new Set(one.stages)
      if (one.id === id) stages.add(stage)
      else stages.delete(stage)
      return { ...one, stages }
    })
  }
}
