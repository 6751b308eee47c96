/** Shares of drills that also end runs without other drills. */
export const drillShares: Readonly<Record<string, number>> = {
  'contested-edits': 0.3, 'repaired-by-reads': 0.06, 'tokens-hold': 0.06, 'newest-locals': 0.1,
  'known-after-start': 0.06, 'promise-first': 0.06, 'users-served': 0.06, 'feeds-follow': 0.06,
  'branches-limited': 0.02, 'bodies-removed': 0.06, 'dropped-cleared': 0.06, 'late-rules': 0.1, 'purges-unseen': 0.1,
  'metadata-arrives': 0.1, 'source-removed': 0.1, 'recovered-alone': 0.1, 'events-told': 0.1, 'broken-view': 0.06,
  'parts-exact': 0.2, 'served-without-one': 0.15,
}
/** Drills after which databases with few replicas may lack writes. */
export const losesWrites: ReadonlySet<string> = new Set([
  'lost-seed', 'lost-writes', 'fresh-while-filled', 'source-removed',
])
/** The share of `lost-seed` when the seed list has one host only, as in few runs. */
export const lostSeedShare = 0.8
