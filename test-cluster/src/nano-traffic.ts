/**
 * One user of a database through nano, who reads and edits documents of their own and knows the expected result of each
 * request.
 */
import { expect } from 'chai'
import type nano from 'nano'
import { seededBytes } from './seeded-bytes.ts'
import { eventually } from './test-cluster.ts'

export interface Note { readonly value: number; readonly words: string }

interface KnownDocument { rev: string; note: Note; attachments: Map<string, Buffer> }

const bulkSize = 20
const fetchSize = 10
const attachmentTypes = ['application/octet-stream', 'image/png']
const attachmentBytesMax = 20_000
/** Lists read one replica of each shard, which may be slightly behind. */
const listMsMax = 10_000

export class NanoUser {
  /** Documents that exist, by id. */
  readonly known = new Map<string, KnownDocument>()
  /** Revisions of the deletions, by id. */
  readonly deleted = new Map<string, string>()
  operations = 0
  readonly #database: nano.DocumentScope<Note>
  readonly #name: string
  #random: number
  #next = 0

  constructor(database: nano.DocumentScope<Note>, name: string, seed: number) {
    this.#database = database
    this.#name = name
    this.#random = seed
  }

  /** Runs until `stopped` returns true. It fails at the first unexpected answer. */
  async run(stopped: () => boolean): Promise<void> {
    const actions = [
      () => this.#insert(), () => this.#insert(), () => this.#update(), () => this.#update(), () => this.#get(),
      () => this.#get(),
      () => this.#conflict(), () => this.#head(), () => this.#destroy(), () => this.#bulk(), () => this.#fetch(),
      () => this.#list(),
      () => this.#attach(), () => this.#attach(), () => this.#readAttachment(), () => this.#detach(),
      () => this.#insertMultipart(),
    ]
    while (!stopped()) {
      await actions[this.#pick(actions.length)]!()
      this.operations++
    }
  }

  /** Reads and checks all documents. */
  async verify(): Promise<void> {
    for (const [id, { rev, note, attachments }] of this.known) {
      const { _attachments = {}, ...document } = await this.#database.get(id, { conflicts: true, attachments: true })
      expect(document).to.deep.equal({ _id: id, _rev: rev, ...note })
      const found = Object.entries(_attachments as Record<string, { readonly data: string }>)
        .map(([name, { data }]) => [name, data]).sort()
      expect(found).to.deep.equal([...attachments].map(([name, data]) => [name, data.toString('base64')]).sort())
    }
    for (const id of this.deleted.keys()) expect(await statusOf(this.#database.get(id))).to.equal(404)
  }

  async #insert(): Promise<void> {
    const id = this.#newId()
    const note = this.#note()
    const { rev } = await this.#database.insert(note, id)
    this.known.set(id, { rev, note, attachments: new Map() })
  }

  async #update(): Promise<void> {
    const found = this.#any()
    if (found === undefined) return
    const [id, document] = found
    const note = this.#note()
    const current = await this.#database.get(id)
    expect(current._rev).to.equal(document.rev)
    const { rev } = await this.#database.insert({ ...current, ...note })
    Object.assign(document, { rev, note })
  }

  async #get(): Promise<void> {
    const found = this.#any()
    if (found === undefined) return
    const { _rev, value, words, _conflicts } = await this.#database.get(found[0], { conflicts: true })
    expect({ _rev, value, words, _conflicts }).to.deep.equal({
      _rev: found[1].rev, ...found[1].note, _conflicts: undefined,
    })
  }

  async #conflict(): Promise<void> {
    const found = this.#any()
    if (found === undefined) return
    const refusal = await this.#database.insert(this.#note(), found[0]).catch((error: unknown) => error)
    expect(refusal, `${refusal}`).to.include({ statusCode: 409 })
  }

  async #head(): Promise<void> {
    const found = this.#any()
    if (found !== undefined) expect((await this.#database.head(found[0])).etag).to.equal(`"${found[1].rev}"`)
  }

  async #destroy(): Promise<void> {
    const found = this.#any()
    if (found === undefined) return
    const { rev } = await this.#database.destroy(found[0], found[1].rev)
    this.known.delete(found[0])
    this.deleted.set(found[0], rev)
  }

  /** Writes new documents and edits an existing one in one request. */
  async #bulk(): Promise<void> {
    const found = this.#any()
    const docs = Array.from({ length: bulkSize }, () => ({ _id: this.#newId(), ...this.#note() }))
    const update = found && found[1].attachments.size === 0
      ? [{ _id: found[0], _rev: found[1].rev, ...this.#note() }]
      : []
    const rows = await this.#database.bulk({ docs: [...docs, ...update] })
    expect(rows.filter(row => row.error)).to.deep.equal([])
    for (const [index, { _id, value, words }] of [...docs, ...update].entries()) {
      this.known.set(_id, { rev: rows[index]!.rev!, note: { value, words }, attachments: new Map() })
    }
  }

  async #fetch(): Promise<void> {
    const keys = [...new Set(Array.from({ length: fetchSize }, () => this.#any()?.[0] ?? 'nothing'))]
    await eventually('many documents to be as they were written', listMsMax, async () => {
      const { rows } = await this.#database.fetch({ keys })
      const found = rows.map(row => 'doc' in row ? row.doc?._rev : undefined)
      expect(found).to.deep.equal(keys.map(key => this.known.get(key)?.rev))
    })
  }

  async #list(): Promise<void> {
    await eventually('the list of documents to be as they were written', listMsMax, async () => {
      const { rows } = await this.#database.list({ startkey: `${this.#name} `, endkey: `${this.#name} \uffff` })
      const listed = rows.map(row => `${row.id} ${row.value.rev}`)
      expect(listed.sort()).to.deep.equal([...this.known].map(([id, { rev }]) => `${id} ${rev}`).sort())
    })
  }

  async #attach(): Promise<void> {
    const found = this.#any()
    if (found === undefined) return
    const [id, document] = found
    const name = `file ${this.#pick(3)}/ü`
    const data = this.#data()
    const { rev } = await this.#database.attachment.insert(
      id, encodeURIComponent(name), data, attachmentTypes[this.#pick(2)]!, { rev: document.rev },
    )
    document.rev = rev
    document.attachments.set(name, data)
  }

  async #readAttachment(): Promise<void> {
    const found = this.#anyWithAttachment()
    if (found === undefined) return
    const [name, data] = [...found[1].attachments][0]!
    const read = await this.#database.attachment.get(found[0], encodeURIComponent(name))
    expect(read.equals(data), `${found[0]} ${name}`).to.equal(true)
  }

  async #detach(): Promise<void> {
    const found = this.#anyWithAttachment()
    if (found === undefined) return
    const [id, document] = found
    const [name] = document.attachments.keys()
    const { rev } =
      await this.#database.attachment.destroy(id, encodeURIComponent(name!), { rev: document.rev }) as { rev: string }
    document.rev = rev
    document.attachments.delete(name!)
  }

  async #insertMultipart(): Promise<void> {
    const id = this.#newId()
    const note = this.#note()
    const attachments = new Map(['first', 'second'].map(name => [name, this.#data()]))
    const parts = [...attachments].map(([name, data]) => ({ name, data, content_type: attachmentTypes[0] }))
    const { rev } = await this.#database.multipart.insert(note, parts, id)
    this.known.set(id, { rev, note, attachments })
  }

  #newId(): string {
    return `${this.#name} ${this.#next++}`
  }

  #note(): Note {
    return { value: this.#pick(1_000_000), words: `Wörter ${this.#pick(1000)} `.repeat(10) }
  }

  #data(): Buffer {
    return seededBytes(`${this.#name} ${this.#next} ${this.#pick(1_000_000)}`, 1 + this.#pick(attachmentBytesMax))
  }

  #any(): [string, KnownDocument] | undefined {
    const ids = [...this.known.keys()]
    const id = ids[this.#pick(ids.length)]
    return id === undefined ? undefined : [id, this.known.get(id)!]
  }

  #anyWithAttachment(): [string, KnownDocument] | undefined {
    return [...this.known].find(([, { attachments }]) => attachments.size > 0)
  }

  /**
   * Returns an integer from 0 to count - 1 from a linear congruential generator, so that every run has the same
   * traffic.
   */
  #pick(count: number): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor(this.#random / 2 ** 32 * count)
  }
}

async function statusOf(answer: Promise<unknown>): Promise<number> {
  return answer.then(() => 200, (error: { statusCode?: number }) => error.statusCode ?? 0)
}
