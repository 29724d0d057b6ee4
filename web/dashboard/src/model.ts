// The state of the cluster as the server streams it.

export interface Pool {
  driver: string;
  pool: string;
  devices: string[];
}

export interface Row {
  name: string;
  node: boolean;
  problem?: string;
  states: string;
  pools: Pool[];
}

export interface Head {
  version: number;
  now: string;
  problem?: string;
  notes: string[];
  pending: number;
  unschedulable: number;
  claims: number;
  nodes: number;
  namespace?: string;
  counts: Record<string, number>;
  nodesWithoutDevices: number;
}

export interface Full extends Head {
  server: string;
  rows: Row[];
}

export interface Change extends Head {
  changed: [number, string, string][];
}

export interface DeviceId {
  driver: string;
  pool: string;
  device: string;
}

/** The device in a cell of a row. */
export function deviceAt(row: Row, cell: number): DeviceId | null {
  let left = cell;
  for (const pool of row.pools) {
    const device = pool.devices[left];
    if (left < pool.devices.length && device !== undefined) {
      return { driver: pool.driver, pool: pool.pool, device };
    }
    left -= pool.devices.length;
  }
  return null;
}

export class Cluster {
  server = "";
  head: Head | null = null;
  rows: Row[] = [];
  /** Changes with the rows themselves, not with their states. */
  shape = 0;

  takeFull(full: Full): void {
    this.server = full.server;
    this.rows = full.rows;
    this.head = full;
    ++this.shape;
  }

  takeChange(change: Change): void {
    for (const [index, states, problem] of change.changed) {
      const row = this.rows[index];
      if (!row) continue;
      row.states = states;
      row.problem = problem || undefined;
    }
    this.head = change;
  }

  get total(): number {
    return Object.values(this.head?.counts ?? {}).reduce((sum, each) => sum + each, 0);
  }
}
