/** The table of results as Markdown. */
import type { Mutant } from './mutant-list.ts'
import type { ResultFolder, StepResult } from './step-result.ts'

/** A vertical bar would begin another column, and lines of titles would end the row. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')
}

function shown(result: StepResult | undefined): string {
  if (result === undefined) return ''
  return result.caught ? cell(result.by) : `**not caught**${result.seeds === undefined ? '' : ` (${result.by})`}`
}

export function resultTable(mutants: readonly Mutant[], results: ResultFolder): string {
  const rows = mutants.map(mutant => {
    const [unit, swarm, scenarios] = (['unit', 'swarm', 'scenarios'] as const).map(step => results.read(mutant, step))
    const file = mutant.file.replace('packages/', '').replace('/src/', '/')
    const cells = [mutant.name, `${file}: ${cell(mutant.breaks)}`, shown(unit), shown(swarm), shown(scenarios)]
    return { row: `| ${cells.join(' | ')} |`, unit, swarm, scenarios }
  })
  const count = (by: (row: typeof rows[number]) => boolean | undefined): number => rows.filter(by).length
  const nothing = count(({ unit, swarm, scenarios }) =>
    unit?.caught === false && swarm?.caught === false && scenarios?.caught !== true)
  return [
    '| mutant | what it breaks | unit tests | swarm | scenarios |', '|---|---|---|---|---|',
    ...rows.map(({ row }) => row), '',
    `${rows.length} mutants. Unit tests: ${count(row => row.unit?.caught)} of ${count(row => row.unit !== undefined)}.`
    + ` Swarm: ${count(row => row.swarm?.caught)} of ${count(row => row.swarm !== undefined)}.`
    + ` Nothing: ${nothing}.`,
  ].join('\n')
}
