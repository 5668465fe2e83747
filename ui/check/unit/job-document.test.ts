import { describe, expect, it } from 'vitest';
import { renamed, withItem, written } from '../../src/submit/job/change';
import { JobDocument } from '../../src/submit/job/document';
import { lineOfPath, pathOfKey, pathOfLine } from '../../src/submit/job/places';

const FILE = `# what this is for
name: vitl   # the short name

# how much of it
resources: {nodes: 4, gpus_per_node: 8, time: 14d} # per attempt
io:
  blobmnt:      # mounted
    datastore: research
    path: 'alice/work'
environment:
    env:
        NCCL_IB_DISABLE: "0"
        LR: 0.10
    setup:
    - pip install -r requirements.txt   # slow
    - python --version
sweep: {lr: [0.1, 0.010], "(bs, acc)": [[8, 4], [16, 2]], seed: 1-3}

# what runs
script: |
  ln -sfn \${{blobmnt}} blobmnt

  python train.py
`;

describe('reading', () => {
  const document = new JobDocument(FILE);

  it('keeps the spelling of values', () => {
    expect(document.read(['resources', 'nodes'])).toBe('4');
    expect(document.read(['environment', 'env', 'LR'])).toBe('0.10');
    expect(document.readList(['sweep', 'lr'])).toEqual(['0.1', '0.010']);
    expect(document.names(['sweep'])).toEqual(['lr', '(bs, acc)', 'seed']);
    expect(document.read(['script'])).toContain('python train.py');
  });

  it('takes a single text for a list of one', () => {
    expect(new JobDocument('cluster: lab\n').readList(['cluster'])).toEqual(['lab']);
    expect(new JobDocument('cluster:\n').readList(['cluster'])).toEqual([]);
  });

  it('says where text is no YAML', () => {
    const broken = new JobDocument('name: a\nio: {b: [1\n');
    expect(broken.isSound).toBe(false);
    expect(broken.problems[0]!.line).toBeGreaterThan(1);
    expect(new JobDocument('- a\n').isSound).toBe(false);
    expect(new JobDocument('').isSound).toBe(true);
    expect(new JobDocument('# nothing yet\n').isSound).toBe(true);
  });
});

describe('writing', () => {
  it('changes one value and nothing else', () => {
    expect(written(FILE, ['name'], 'vith')).toBe(FILE.replace('vitl   #', 'vith #'));
    expect(written(FILE, ['resources', 'nodes'], '2')).toBe(FILE.replace('nodes: 4', 'nodes: 2'));
    const changed = written(FILE, ['io', 'blobmnt', 'path'], 'bob');
    expect(changed).toContain("path: 'bob'");
    expect(changed).toContain('# mounted');
  });

  it('leaves what it does not touch as it is, to the character', () => {
    const changed = written(FILE, ['environment', 'env', 'LR'], '0.20');
    expect(changed).toContain('LR: 0.20');
    expect(changed).toContain('NCCL_IB_DISABLE: "0"');
    expect(changed).toContain('# slow');
    expect(changed.split('environment:')[0]).toBe(FILE.split('environment:')[0]);
    expect(changed.slice(changed.indexOf('sweep:'))).toBe(FILE.slice(FILE.indexOf('sweep:')));
  });

  it('puts a new key where people write it', () => {
    const changed = written(FILE, ['experiment'], 'hoi');
    expect(changed.indexOf('experiment:')).toBeGreaterThan(changed.indexOf('name:'));
    expect(changed.indexOf('experiment:')).toBeLessThan(changed.indexOf('resources:'));
    expect(changed).toContain('# how much of it');
    expect(written('', ['resources', 'nodes'], '2')).toBe('resources:\n  nodes: 2\n');
    expect(written('# mine\n', ['name'], 'a')).toBe('# mine\n\nname: a\n');
  });

  it('takes a key away, with what is empty above it', () => {
    expect(written(FILE, ['io', 'blobmnt'], undefined)).not.toContain('io:');
    const changed = written(FILE, ['resources'], undefined);
    expect(changed).not.toContain('resources');
    expect(changed).toContain('# the short name');
    expect(written('name: a\n', ['name'], '')).toBe('');
    expect(written('# mine\nname: a\n', ['name'], '')).not.toContain('name');
  });

  it('writes lines as a block', () => {
    const script = 'set -e\npython train.py --lr 0.1\n';
    expect(written('', ['script'], script, { isScript: true })).toBe(
      'script: |\n  set -e\n  python train.py --lr 0.1\n',
    );
    const again = written(FILE, ['script'], 'echo "# no comment"\n', { isScript: true });
    expect(new JobDocument(again).read(['script'])).toBe('echo "# no comment"\n');
    expect(again).toContain('# what runs\nscript: |');
  });

  it('quotes what would be something else', () => {
    expect(written('', ['name'], 'true')).toBe('name: "true"\n');
    expect(written('', ['name'], 'null')).toBe('name: "null"\n');
    expect(written('', ['environment', 'env', 'A'], '0', { isText: true })).toContain('A: "0"');
    expect(written('', ['name'], 'a: b # c')).toBe('name: "a: b # c"\n');
    expect(new JobDocument(written('', ['name'], ' a ')).read(['name'])).toBe(' a ');
  });

  it('changes items of a list and keeps the comments of the others', () => {
    const changed = withItem(FILE, ['environment', 'setup'], 1, 'nvidia-smi');
    expect(changed).toContain('# slow');
    expect(changed).toContain('- nvidia-smi');
    expect(withItem(FILE, ['environment', 'setup'], 0, undefined)).not.toContain('requirements');
    expect(written('', ['tags'], ['a', 'b'])).toBe('tags: [a, b]\n');
    expect(written('tags: [a, b]\n', ['tags'], [])).toBe('');
  });

  it('gives a key another name in its place', () => {
    const changed = renamed(FILE, ['io', 'blobmnt'], 'data');
    expect(changed).toContain('# mounted');
    expect(new JobDocument(changed).read(['io', 'data', 'datastore'])).toBe('research');
    expect(renamed('io: {a: {datastore: x}, b: {datastore: y}}\n', ['io', 'a'], 'b')).toContain('a:');
  });

  it('writes nothing into a text that is no YAML', () => {
    expect(written('io: {a: [', ['name'], 'x')).toBe('io: {a: [');
  });

  it('keeps the style of a file that is one flow mapping', () => {
    const changed = written('{"name": "a", "script": "x"}\n', ['name'], 'b');
    expect(new JobDocument(changed).read(['name'])).toBe('b');
    expect(changed).toContain('{');
  });

  it('keeps every other key over many random changes', () => {
    const keys: [string[], string][] = [
      [['name'], 'n'],
      [['resources', 'time'], '2h'],
      [['io', 'blobmnt', 'mode'], 'read'],
      [['code', 'root'], 'src'],
      [['environment', 'env', 'B'], '1'],
    ];
    let text = FILE;
    for (const [path, value] of [...keys, ...[...keys].reverse()]) text = written(text, path, value);
    for (const [path, value] of keys) expect(new JobDocument(text).read(path)).toBe(value);
    for (const comment of ['# what this is for', '# how much of it', '# slow', '# what runs', '# mounted']) {
      expect(text).toContain(comment);
    }
    expect(new JobDocument(text).read(['script'])).toBe(new JobDocument(FILE).read(['script']));
  });
});

describe('places', () => {
  const document = new JobDocument(FILE);

  it('finds the line of a key', () => {
    expect(lineOfPath(document, pathOfKey(document, 'name'))).toBe(2);
    expect(lineOfPath(document, pathOfKey(document, 'resources.time'))).toBe(5);
    expect(lineOfPath(document, pathOfKey(document, 'io.blobmnt.path'))).toBe(9);
    expect(lineOfPath(document, pathOfKey(document, 'environment.setup[1]'))).toBe(16);
    expect(lineOfPath(document, ['io', 'blobmnt', 'mode'])).toBe(7);
    expect(lineOfPath(document, ['retry'])).toBe(null);
  });

  it('finds names that hold dots', () => {
    const dotted = new JobDocument('environment:\n  env:\n    A.B: x\n    A: y\n');
    expect(pathOfKey(dotted, 'environment.env.A.B')).toEqual(['environment', 'env', 'A.B']);
  });

  it('finds the key of a line', () => {
    expect(pathOfLine(document, 2)).toEqual(['name']);
    expect(pathOfLine(document, 9)).toEqual(['io', 'blobmnt', 'path']);
    expect(pathOfLine(document, 16)).toEqual(['environment', 'setup', 1]);
    expect(pathOfLine(document, 23)).toEqual(['script']);
  });
});
