/** Messages of the protocol between nodes with any values that the schema of the protocol can express. */
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { schemaText } from '../../packages/rpc/src/schema/schema-text.ts'
import { oddText } from './odd-text.ts'

const root = new protobuf.Root()
for (const text of Object.values(schemaText)) protobuf.parse(text, root)
root.resolveAll()

const text = oddText.map(each => each.toWellFormed())
const double = fc.oneof(
  fc.constantFrom(0, -1, 1, 0.5, 2 ** 53, -(2 ** 53), Infinity, -Infinity, Number.NaN, 1e308), fc.nat(50),
)
const uint32 = fc.oneof(fc.nat(20), fc.constantFrom(0xffff_ffff, 0x7fff_ffff, 65_536))
const depthMax = 6

const scalars: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: text, double, uint32, int32: fc.integer(), bool: fc.boolean(), bytes: fc.uint8Array({ maxLength: 40 }),
}

function valueOf(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const type = field.resolvedType
  const one = type === null ? scalars[field.type] ?? uint32
    : type instanceof protobuf.Enum ? fc.constantFrom(...Object.values(type.values), 99) : messageOf(type, depth + 1)
  if (field instanceof protobuf.MapField) return fc.dictionary(text, one, { maxKeys: 3 })
  return field.repeated ? fc.array(one, { maxLength: 3 }) : one
}

/** Messages of a type. Each field is absent in some of them; of the fields of a `oneof`, at most one is there. */
function messageOf(type: protobuf.Type, depth = 0): fc.Arbitrary<object> {
  const fields = type.fieldsArray.filter(({ resolvedType }) => resolvedType === null || depth < depthMax)
  const chosen = fc.tuple(...fields.map(field => fc.option(valueOf(field.resolve(), depth), { freq: 4 })))
  return fc.tuple(chosen, fc.nat()).map(([values, which]) => {
    const message: Record<string, unknown> = {}
    for (const [index, field] of fields.entries()) {
      const alternatives = field.partOf?.fieldsArray
      const isExcluded = alternatives !== undefined && alternatives[which % alternatives.length] !== field
      if (values[index] !== null && !isExcluded) message[field.name] = values[index]
    }
    return message
  })
}

/** Messages whose `content` is a call of one verb, with its request. */
export function callsOf(verb: string): fc.Arbitrary<object> {
  const call = root.lookupType('sectional.Call')
  const request = call.fields[verb]?.resolve().resolvedType
  if (!(request instanceof protobuf.Type)) throw new Error(`the protocol has no verb ${verb}`)
  const shard = { incarnation: 'incarnation-1', begin: 0, end: 0xffff_ffff }
  return fc.tuple(messageOf(request), fc.nat(5), fc.option(messageOf(root.lookupType('sectional.Shard')), { freq: 9 }))
    .map(([value, id, otherShard]) => ({ id, call: { timeoutMs: 100, shard: otherShard ?? shard, [verb]: value } }))
}

/** Messages of all kinds. */
export const messages: fc.Arbitrary<object> = messageOf(root.lookupType('sectional.Message'))

export const verbs: readonly string[] = root.lookupType('sectional.Call').oneofs['verb']!.fieldsArray
  .map(field => field.name)
