// Where the rows of the map are: nodes side by side in as many columns as fit, in reading order.
import type { Row } from "./model";

export interface Metrics {
  cell: number; // side of a cell with its gap
  label: number; // width of a node's name
  gutter: number; // between columns
  font: number;
}

export interface Spot {
  row: number; // index into the list of rows
  cell: number; // -1: the node's name
}

/** The longest line of cells; nodes with more devices continue on the next line. */
const longestLine = 16;
/** Room for the ring around a selected cell of the first row. */
const margin = 4;

export class Layout {
  readonly columns: number;
  readonly height: number;
  readonly perLine: number;
  private readonly columnWidth: number;
  /** The top of each band of nodes; one more than there are bands. */
  private readonly tops: number[] = [margin];

  constructor(readonly rows: Row[], readonly width: number, readonly metrics: Metrics) {
    const { cell, label, gutter } = metrics;
    const most = rows.reduce((longest, row) => Math.max(longest, row.states.length), 1);
    // Lines of equal length: eight devices that do not fit one line become four and four.
    const fitting = Math.min(longestLine, Math.max(1, Math.floor((width - label) / cell)));
    this.perLine = Math.ceil(most / Math.ceil(most / fitting));
    const needed = label + this.perLine * cell + gutter;
    this.columns = Math.max(1, Math.floor((width + gutter) / needed));
    // One column may be as wide as it is; several share the width evenly.
    this.columnWidth = this.columns === 1 ? width : Math.min(needed * 1.4, (width + gutter) / this.columns);
    for (let first = 0; first < rows.length; first += this.columns) {
      let lines = 1;
      for (let i = first; i < Math.min(first + this.columns, rows.length); ++i) lines = Math.max(lines, this.linesOf(i));
      this.tops.push(this.tops[this.tops.length - 1]! + lines * cell + Math.round(cell / 3));
    }
    this.height = this.tops[this.tops.length - 1]! + margin;
  }

  private linesOf(row: number): number {
    return Math.max(1, Math.ceil(this.rows[row]!.states.length / this.perLine));
  }

  /** The rows of the bands between two heights: [first, end). */
  visible(top: number, bottom: number): [number, number] {
    const first = this.bandAt(top);
    const last = this.bandAt(bottom);
    return [first * this.columns, Math.min(this.rows.length, (last + 1) * this.columns)];
  }

  private bandAt(y: number): number {
    let low = 0;
    let high = this.tops.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle]! <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** The corner of a row's name. */
  corner(row: number): { x: number; y: number } {
    return { x: Math.floor((row % this.columns) * this.columnWidth), y: this.tops[Math.floor(row / this.columns)] ?? 0 };
  }

  /** The corner of a cell. */
  place(spot: Spot): { x: number; y: number } {
    const { x, y } = this.corner(spot.row);
    const cell = Math.max(0, spot.cell);
    return {
      x: x + this.metrics.label + (cell % this.perLine) * this.metrics.cell,
      y: y + Math.floor(cell / this.perLine) * this.metrics.cell,
    };
  }

  hit(x: number, y: number): Spot | null {
    if (y < 0 || y >= this.height) return null;
    const column = Math.floor(x / this.columnWidth);
    if (column < 0 || column >= this.columns) return null;
    const band = this.bandAt(y);
    const row = band * this.columns + column;
    if (row >= this.rows.length) return null;
    const inside = x - column * this.columnWidth - this.metrics.label;
    if (inside < 0) return { row, cell: -1 };
    const across = Math.floor(inside / this.metrics.cell);
    const line = Math.floor((y - this.tops[band]!) / this.metrics.cell);
    const cell = line * this.perLine + across;
    if (across >= this.perLine || cell >= this.rows[row]!.states.length) return null;
    return { row, cell };
  }

  /** The next spot for an arrow key. */
  move(from: Spot, key: string): Spot {
    const length = this.rows[from.row]?.states.length ?? 0;
    const at = (row: number, cell: number): Spot => {
      const bounded = Math.min(Math.max(row, 0), this.rows.length - 1);
      const last = (this.rows[bounded]?.states.length ?? 1) - 1;
      return { row: bounded, cell: Math.min(Math.max(cell, 0), last) };
    };
    const column = from.cell % this.perLine;
    switch (key) {
      case "ArrowLeft":
        return from.cell > 0 || from.row === 0 ? at(from.row, from.cell - 1) : at(from.row - 1, Infinity);
      case "ArrowRight":
        return from.cell + 1 < length || from.row + 1 >= this.rows.length ? at(from.row, from.cell + 1) : at(from.row + 1, 0);
      case "ArrowDown":
        if (from.cell + this.perLine < length) return at(from.row, from.cell + this.perLine);
        return from.row + this.columns < this.rows.length ? at(from.row + this.columns, column) : from;
      case "ArrowUp": {
        if (from.cell >= this.perLine) return at(from.row, from.cell - this.perLine);
        const above = from.row - this.columns;
        if (above < 0) return from;
        const lastLine = (this.linesOf(above) - 1) * this.perLine;
        return at(above, lastLine + column);
      }
      case "Home":
        return at(from.row, 0);
      case "End":
        return at(from.row, length - 1);
      default:
        return from;
    }
  }
}
