import type { SortKey } from '../api/types';

export type Column = { name: string; words: string; sort?: SortKey; isNumber?: boolean };

/** In the order in which a row shows them. Their widths are in `runs.css`. */
export const COLUMNS: Column[] = [
  { name: 'state', words: 'State', sort: 'state' },
  { name: 'name', words: 'Name', sort: 'name' },
  { name: 'cluster', words: 'Cluster', sort: 'cluster' },
  { name: 'experiment', words: 'Experiment', sort: 'experiment' },
  { name: 'gpus', words: 'GPUs', sort: 'gpus', isNumber: true },
  { name: 'age', words: 'Age', sort: 'created', isNumber: true },
  { name: 'took', words: 'Took', sort: 'took', isNumber: true },
  { name: 'command', words: 'Command' },
];

export const ROW_HEIGHT = 38;
export const CARD_HEIGHT = 96;
/** Below this width a row is a card. */
export const CARDS_BELOW = 820;
