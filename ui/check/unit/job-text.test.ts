import { describe, expect, it } from 'vitest';
import { written } from '../../src/submit/job/change';
import { JobDocument } from '../../src/submit/job/document';
import { jobText } from '../../src/submit/job/job-text';
import { unifiedDiff } from '../../src/submit/job/line-diff';
import { fieldName, placed } from '../../src/submit/job/problems';
import { sameCommand } from '../../src/submit/job/same-command';
import { findSecrets, withoutSecrets } from '../../src/submit/job/secrets';
import { withSecretMoved } from '../../src/submit/move-secret';
import { parseSweep, sweepText } from '../../src/submit/job/sweep-text';

describe('the sweep as text', () => {
  it.each([
    ['lr: 0.1, 0.010', { lr: ['0.1', '0.010'] }],
    ['lr:\n0.1\n0.01', { lr: ['0.1', '0.01'] }],
    ['lr: 0.1, 0.01, seed: 1-3', { lr: ['0.1', '0.01'], seed: '1-3' }],
    ['seed: 1, 2-4', { seed: ['1', '2', '3', '4'] }],
    ['seed: 08-10', { seed: '08-10' }],
    ['(a, b): (1, 2), (3, 4)', { '(a, b)': [['1', '2'], ['3', '4']] }],
    ['(a,b):\n(1,2)\n(3,4)\nlr: 0.1', { '(a, b)': [['1', '2'], ['3', '4']], lr: ['0.1'] }],
    [`w: '1-3', "a,b", plain`, { w: ['1-3', 'a,b', 'plain'] }],
    ['path: a:b, https://x/y', { path: ['a:b', 'https://x/y'] }],
    ['w: two words, one', { w: ['two words', 'one'] }],
    ['', {}],
  ])('reads %j', (text, sweep) => {
    expect(parseSweep(text)).toEqual({ sweep, wrong: null });
  });

  it.each([
    ['0.1, 0.2', 'a name'],
    ['lr:', 'no value'],
    ['(a, b): (1, 2, 3)', 'has 3'],
    ['(a, b): 1, 2', 'brackets'],
    ['lr: 1, lr: 2', 'twice'],
    ['lr: "a', 'not closed'],
    ['lr: (1', 'not closed'],
    ['seed: 5-2', 'no range'],
  ])('says what is wrong with %j', (text, wrong) => {
    expect(parseSweep(text).wrong).toContain(wrong);
  });

  it('goes both ways', () => {
    for (const text of ['lr: 0.1, 0.010\nseed: 1-3', '(bs, acc): (8, 4), (16, 2)', 'w: "1-3", "a,b", x']) {
      const yaml = written('', ['sweep'], parseSweep(text).sweep);
      expect(sweepText(new JobDocument(yaml))).toBe(text);
      expect(parseSweep(sweepText(new JobDocument(yaml))).sweep).toEqual(parseSweep(text).sweep);
    }
  });

  it('keeps what the file says of an axis that stays', () => {
    const file = 'sweep:\n  lr: [0.1] # the best so far\n  seed: 1-3\n';
    expect(written(file, ['sweep'], parseSweep('lr: 0.1, 0.01\nseed: 1-4').sweep)).toBe(
      'sweep:\n  lr: [0.1, 0.01] # the best so far\n  seed: 1-4\n',
    );
  });
});

describe('secrets', () => {
  it.each([
    ['export PAT=ghp_0123456789abcdefABCD', 'PAT'],
    ['git clone https://ghp_0123456789abcdefABCD@github.com/x', 'GITHUB_PAT'],
    ["azcopy cp 'https://a/b?sv=1&sig=abcdefghijklm0p%3D' .", 'SAS_SIGNATURE'],
    ['huggingface-cli login --token hf_abcdefghij0123456789', 'HF_TOKEN'],
    ['DefaultEndpointsProtocol=https;AccountKey=abcdefgh12345678==', 'ACCOUNT_KEY'],
    ['aws_access_key_id = AKIA0123456789ABCDEF', 'AWS_ACCESS_KEY_ID'],
    ['WANDB_API_KEY: abcdef123456', 'WANDB_API_KEY'],
    ['DB_PASSWORD="hunter22"', 'DB_PASSWORD'],
  ])('are found in %j', (text, name) => {
    expect(findSecrets(`first\n${text}\n`)).toMatchObject([{ line: 2, name }]);
    expect(withoutSecrets(text)).toContain('***');
  });

  it.each([
    'python train.py --max-tokens 4096',
    'export PAT=$GITHUB_PAT',
    'MAX_TOKENS: 4096',
    'API_KEY_FILE=/run/key',
    'KEY=${{key}}',
    'tokenizer=hf_tokenizer',
    'TOKENIZERS_PARALLELISM: false',
    'design=eyJust',
    'secrets: [GITHUB_PAT, HF_TOKEN]',
    'secrets:\n  - GITHUB_PAT',
    'credential: {sas: env:RESEARCH_SAS}',
  ])('are not seen in %j', (text) => {
    expect(findSecrets(text)).toEqual([]);
  });

  it('move to the secrets of the job', () => {
    const moved = (text: string) => withSecretMoved(text, findSecrets(text)[0]!);
    expect(moved('script: |\n  export PAT=ghp_0123456789abcdefABCD\n  x\n')).toBe('environment:\n  secrets: [PAT]\nscript: |\n  x\n');
    expect(moved('command: login hf_abcdefghij0123456789\n')).toContain('command: login ${HF_TOKEN}\n');
    const ofVariable = moved('environment:\n  env:\n    WANDB_API_KEY: abcdef123456\n    B: c\n');
    expect(ofVariable).toBe('environment:\n  env:\n    B: c\n  secrets: [WANDB_API_KEY]\n');
    const inOneLine = moved('environment: {env: {A: ghp_0123456789abcdefABCD}, secrets: [X]}\n');
    expect(findSecrets(inOneLine)).toEqual([]);
    expect(inOneLine).toContain('secrets: [X, A]');
  });

  it('are never shown whole', () => {
    const [found] = findSecrets('ghp_0123456789abcdefABCD');
    expect(found!.shown).toBe('ghp_…');
  });
});

describe('problems', () => {
  const document = new JobDocument('resources: {time: x}\nio:\n  a: {datastore: d}\n  b:\n    mode: m\nscript: |\n  a\n  b\n');
  const fields = [['resources', 'time'], ['io', 'a', 'datastore'], ['io', 'b', 'mode'], ['script'], ['command']].map(fieldName);
  const problem = (key: string | null, line: number | null) => ({ key, line, column: null, message: 'm', hints: [] });
  const one = (key: string | null, line: number | null) => placed([problem(key, line)], document, fields)[0]!;

  it('belong to the field of their key', () => {
    expect(one('resources.time', null)).toMatchObject({ field: 'resources › time', line: 1 });
    expect(one('io.b.mode', 5)).toMatchObject({ field: 'io › b › mode', line: 5 });
    expect(one('io.a', null)).toMatchObject({ field: 'io › a › datastore', line: 3 });
  });

  it('belong to the field of their line without a key', () => {
    expect(one(null, 5).field).toBe('io › b › mode');
    expect(one(null, 8).field).toBe('script');
  });

  it('belong to no field if there is none', () => {
    expect(one('commmand', null)).toMatchObject({ field: null, line: null });
  });
});

describe('a job of the history', () => {
  it('becomes a job file', () => {
    const text = jobText({
      script: 'set -e\npython train.py\n',
      name: 'train',
      experiment: null,
      tags: [],
      resources: { time: '2h', nodes: 4, location: [] },
      environment: { env: { A: '0' }, setup: ['pip install x'] },
      sweep: { '(a, b)': [['1', '2'], ['3', '4']], seed: '1-3' },
    });
    expect(text).toBe(
      'name: train\nresources:\n  nodes: 4\n  time: 2h\nenvironment:\n  setup: [pip install x]\n  env:\n    A: "0"\n' +
        'sweep:\n  (a, b): [["1", "2"], ["3", "4"]]\n  seed: 1-3\nscript: |\n  set -e\n  python train.py\n',
    );
    expect(jobText({})).toBe('');
  });
});

describe('the same as a command', () => {
  const none = { after: '', in_place: false, any_size: false };
  const line = (text: string, options = none) => {
    const document = new JobDocument(text);
    return sameCommand(document, options, sweepText(document));
  };

  it('has an option for each key', () => {
    const text =
      'cluster: lab\nresources: {nodes: 2, gpus_per_node: 8, time: 2h}\nenvironment: {env: {A: b c}}\n' +
      "sweep: {lr: [0.1, 0.01]}\ncommand: [python, train.py, '--lr', '${{lr}}']\n";
    expect(line(text).line).toBe(
      "tow submit -c lab -n 16 --nodes 2 --time 2h --env 'A=b c' --sweep lr=0.1,0.01 python train.py --lr '${{lr}}'",
    );
    expect(line('command: x\n', { ...none, after: '@', in_place: true }).line).toBe('tow submit --after @ --in-place x');
  });

  it('says which keys have none', () => {
    const { line: found, withoutOption } = line('script: x\nio: {a: {datastore: b}}\n');
    expect(found).toBe(null);
    expect(withoutOption).toEqual(['script', 'io']);
  });
});

describe('the difference of two texts', () => {
  it('is a diff with a little of what is around', () => {
    const before = 'a\nb\nc\nd\ne\nf\ng\nh\n';
    expect(unifiedDiff(before, before.replace('d\n', 'D\n'), 'job')).toBe(
      '--- a/job\n+++ b/job\n@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n',
    );
    expect(unifiedDiff(before, before, 'job')).toBe('');
    expect(unifiedDiff('', 'a\n', 'job')).toContain('+a');
    expect(unifiedDiff('a\n', '', 'job')).toContain('-a');
  });
});
