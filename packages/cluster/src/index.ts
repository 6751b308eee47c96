export * from './control/cluster-state.ts'
export * from './control/control-plane.ts'
export * from './coordinator/coordinator.ts'
