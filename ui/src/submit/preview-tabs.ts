export const PREVIEWS = [
  { name: 'plan', words: 'Dry run' },
  { name: 'runs', words: 'Runs' },
  { name: 'code', words: 'Code' },
  { name: 'same', words: 'Same in a terminal' },
  { name: 'changes', words: 'Changes' },
] as const;

export type PreviewName = (typeof PREVIEWS)[number]['name'];
