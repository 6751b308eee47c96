/** Where the nodes of a `TestCluster` listen, and how the paths between them are blocked. */
export interface NodePlace {
  readonly address: string
  readonly httpPort: number
  readonly clusterPort: number
  /** Port that other nodes dial. */
  readonly advertisedPort: number
  /** Words in front of the command of the node's process. */
  readonly launcher: readonly string[]
}

/** Returns whether bytes of one node reach another one. */
export type MayPass = (from: number, to: number) => boolean

export interface ClusterNetwork {
  /** The place of node 1 comes first. */
  readonly places: readonly NodePlace[]
  /**
   * Opens the network, without any block.
   *
   * @param processIds returns the current process ids of the nodes, by node number
   */
  open(processIds: () => ReadonlyMap<number, number>): Promise<void>
  /** Blocks exactly the paths that may not pass from now on. Connections stay open. */
  update(mayPass: MayPass): void
  close(): Promise<void>
}
