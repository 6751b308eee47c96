/**
 * Questions of the HTTP API about a node. They are answered locally for this node, and sent over the control link for
 * another one. Both ends are in this file so that they agree.
 */
import { ApiError, type ErrorEntry, type NodeQuestion, isJsonObject } from '@sectional/core'
import type { ControlPlane } from '@sectional/cluster'
import { answerConfiguration, type ConfigurationAnswerParts } from './configuration-answer.ts'
import { checkConfigurationQuestion } from './configuration-question.ts'
import type { NodeInformation } from '../settings/node-information.ts'

export interface AnsweringParts extends ConfigurationAnswerParts {
  readonly nodeInformation: NodeInformation
}

interface AskingParts extends Omit<AnsweringParts, 'log' | 'clock' | 'random'> {
  readonly control: ControlPlane
  readonly runtime: Pick<AnsweringParts, 'log' | 'clock' | 'random'>
}

/** The answer of a node that refuses a question. */
interface Refusal { readonly refused: Required<ErrorEntry> }

/**
 * Asks a node.
 * @param node a member's name, or `_local`
 * @throws ApiError `not_found` when it is not a member, `nodedown` when there is no link to it or it does not answer in
 *   time; or the error with which it refuses the question
 */
export async function askNode(
  asking: AskingParts, node: string, question: NodeQuestion, argument: unknown,
): Promise<unknown> {
  const { control, runtime } = asking
  if (node === '_local' || node === control.node) {
    const { log, clock, random } = runtime
    return answerQuestion({ ...asking, log, clock, random }, question, argument)
  }
  const members = control.state()?.nodes ?? {}
  if (!Object.hasOwn(members, node)) throw new ApiError('not_found', `no such node: ${node}`)
  if (!control.connectedNodes().includes(node)) throw new ApiError('nodedown', `${node} is down`)
  const answer = await control.ask(node, question, argument)
  if (isRefusal(answer)) throw new ApiError(answer.refused, answer.refused.reason)
  return answer
}

/** Returns this node's answer to another node as JSON. */
export async function answerNodeQuestion(
  answering: AnsweringParts, question: NodeQuestion, argument: unknown,
): Promise<unknown> {
  try {
    return await answerQuestion(answering, question, argument)
  } catch (refusal) {
    if (!(refusal instanceof ApiError)) throw refusal
    const { status, error, reason } = refusal
    return { refused: { status, error, reason } } satisfies Refusal
  }
}

async function answerQuestion(
  answering: AnsweringParts, question: NodeQuestion, argument: unknown,
): Promise<unknown> {
  const { nodeInformation } = answering
  switch (question) {
    case 'stats': return nodeInformation.statistics()
    case 'system': return nodeInformation.system()
    case 'prometheus': return nodeInformation.prometheus()
    case 'versions': return nodeInformation.versions()
    case 'active-tasks': return nodeInformation.activeTasks()
    case 'replicas': return nodeInformation.replicas(checkDatabase(argument))
    case 'config': return answerConfiguration(answering, checkConfigurationQuestion(argument))
  }
}

/** A section named `refused` has texts as members, and an error has a number. */
function isRefusal(answer: unknown): answer is Refusal {
  if (!isJsonObject(answer) || !isJsonObject(answer['refused'])) return false
  const { status, error, reason } = answer['refused']
  return typeof status === 'number' && status >= 400 && status <= 599
    && typeof error === 'string' && typeof reason === 'string'
}

function checkDatabase(argument: unknown): string {
  if (typeof argument === 'string') return argument
  throw new ApiError('bad_request', 'not the name of a database')
}
