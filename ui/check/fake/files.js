// The files of a run, as they are in every run of the fake.

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC';
const FILES = {
  'train.log': 'one\ntwo\nthree\n',
  'metrics.json': '{\n  "loss": 0.123,\n  "steps": 60\n}\n',
  'out/last.pt': null,
  'out/curve.png': PIXEL,
  'out/notes/readme.md': '# Notes\n\nText.\n',
};

export function listFiles({ path = '' }) {
  const prefix = path ? `${path.replace(/\/$/, '')}/` : '';
  const entries = new Map();
  for (const [name, content] of Object.entries(FILES)) {
    if (!name.startsWith(prefix)) continue;
    const [part, ...below] = name.slice(prefix.length).split('/');
    const isFolder = below.length > 0;
    const bytes = content === null ? 3_400_000_000 : content.length;
    entries.set(part, isFolder ? { path: prefix + part, is_folder: true } : { path: prefix + part, is_folder: false, bytes });
  }
  return { entries: [...entries.values()] };
}

export function readFile({ path }) {
  const content = FILES[path];
  if (content === undefined) return undefined;
  if (content === null) return { base64: Buffer.from([0, 1, 2, 255]).toString('base64'), bytes: 3_400_000_000, is_cut: true };
  if (path.endsWith('.png')) return { base64: content, bytes: Buffer.from(content, 'base64').length, is_cut: false };
  return { text: content, bytes: content.length, is_cut: false };
}
