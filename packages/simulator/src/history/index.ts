export { checkHistory } from './check-history.ts'
export type { Finding, Rule } from './finding.ts'
export { listReads } from './recorded-history.ts'
export type {
  Edit, EditOutcome, FinalBranch, FinalDocument, ListAnswer, LocalRead, LocalWrite, NameRequest, Read, RecordedHistory,
} from './recorded-history.ts'
