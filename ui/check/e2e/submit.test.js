import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start, until, violations } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 40 });
});
after(() => ui.close());

const field = (label) => page.getByLabel(label, { exact: true }).first();
const yaml = async () => JSON.parse(await page.evaluate(() => localStorage.getItem('towline-submit-draft'))).text;
const callsOf = (name) => ui.fake.calls.filter(({ call }) => call === name);
const ready = () => page.getByText(/Ready: /).waitFor();

/** The page with a draft in it, as if it had been left and opened again. */
async function open(text = '', { address = '/submit', view = 'form', options } = {}) {
  await page?.close();
  page = await ui.open('/nowhere');
  await page.evaluate(
    ([draft, shown]) => {
      localStorage.clear();
      localStorage.setItem('towline-submit-draft', JSON.stringify(draft));
      localStorage.setItem('towline-submit-view', JSON.stringify(shown));
    },
    [{ text, options }, view],
  );
  await page.goto(`${ui.fake.origin}/#${address}`);
  await page.getByRole('heading', { level: 1, name: 'Submit a job' }).waitFor();
  await page.getByText('12 of 96 GPUs free').waitFor();
  return page;
}

test('a filled form is a job file, and is kept', async () => {
  await open();
  await field('Script').fill('python train.py --lr ${{lr}} --data ${{data}}');
  await field('Sweep').fill('lr: 0.1, 0.010');
  await field('Name').first().fill('vitl');
  await page.getByRole('checkbox', { name: /^lab/ }).check();
  await field('Nodes').fill('2');
  await field('GPUs per node').fill('8');
  await field('Time limit').fill('14d');
  await page.getByRole('radio', { name: /^Basic/ }).check();
  await page.getByRole('button', { name: 'Add', exact: true }).first().click();
  await field('Datastore').fill('research');
  await field('Path').fill('alice/work');
  await field('Mode').selectOption('read');
  await field('Set-up').fill('pip install x\nnvidia-smi');
  await page.getByPlaceholder('NAME').fill('NCCL_IB_DISABLE');
  await page.keyboard.press('Enter');
  await page.getByLabel('Value of NCCL_IB_DISABLE').fill('0');
  await field('Secrets, by name').fill('GITHUB_PAT, HF_TOKEN');
  await ready();
  assert.equal(
    await yaml(),
    `name: vitl
cluster: lab
resources:
  nodes: 2
  gpus_per_node: 8
  time: 14d
  tier: basic
io:
  data:
    datastore: research
    path: alice/work
    mode: read
environment:
  setup: [pip install x, nvidia-smi]
  env:
    NCCL_IB_DISABLE: "0"
  secrets: [GITHUB_PAT, HF_TOKEN]
sweep:
  lr: [0.1, 0.010]
script: |
  python train.py --lr \${{lr}} --data \${{data}}
`,
  );
  await page.reload();
  await ready();
  assert.equal(await field('Time limit').inputValue(), '14d');
  assert.equal(await field('Sweep').inputValue(), 'lr: 0.1, 0.010');
  await page.getByText('Ready: 2 runs on lab').waitFor();
});

test('what was typed into the YAML is in the form, and comments stay', async () => {
  await open('', { view: 'both' });
  const area = page.getByLabel('Job file', { exact: true });
  await area.fill('# the large one\nname: a # short\ncluster: lab\ncommand: python x.py\n');
  await until(async () => (await field('Name').inputValue()) === 'a');
  await field('Name').fill('b');
  await until(async () => (await area.inputValue()).includes('name: b # short'));
  assert.match(await area.inputValue(), /^# the large one\n/);
  await area.fill('name: [b\n');
  await page.getByText('the form waits until it is mended').waitFor();
  assert.ok(await field('Name').isDisabled());
});

test('a command of several words is seen, and its words stay apart', async () => {
  await open('cluster: lab\ncommand: [python, train.py, --name, "two words"]\n');
  assert.equal(await field('Command').inputValue(), 'python\ntrain.py\n--name\ntwo words');
  await field('Command').fill('python\ntrain.py\n--name\nthree more words');
  const wanted = 'command: [python, train.py, --name, "three more words"]';
  await until(async () => (await yaml()).includes(wanted), wanted);
  // What would not be the same when it is read again is only shown.
  await open('cluster: lab\ncommand: [sh, -c, "one\\ntwo"]\n');
  await page.getByText('change them in the YAML').waitFor();
  assert.match(await yaml(), /one\\ntwo/);
  assert.deepEqual(await violations(page), []);
});

test('a problem stands beside its field, in the summary, and nothing is sent', async () => {
  await open('cluster: lab\nresources: {time: soon}\ncommand: python ${{lr}}\nresorces: 1\n');
  const time = field('Time limit');
  await until(async () => (await time.getAttribute('aria-invalid')) === 'true', 'the field is marked');
  const described = (await time.getAttribute('aria-describedby')).split(' ');
  const texts = await Promise.all(described.map((id) => page.locator(`[id="${id}"]`).innerText()));
  assert.match(texts.join(' '), /soon is no span of time/);
  assert.match(texts.join(' '), /2h30m/);
  await page.getByRole('heading', { name: '3 things to mend before this can be sent' }).waitFor();
  await page.getByText('did you mean resources').waitFor();

  const before = callsOf('submit').length;
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await until(() => page.evaluate(() => document.activeElement?.matches('[aria-labelledby=to-mend]')), 'the summary has the focus');
  assert.equal(callsOf('submit').length, before);

  await page.getByRole('button', { name: 'resources.time' }).click();
  await until(() => time.evaluate((input) => input === document.activeElement), 'the field has the focus');
  await time.fill('2h');
  await page.getByRole('heading', { name: '2 things to mend' }).waitFor();
  assert.equal(await time.getAttribute('aria-invalid'), null);
});

test('a key that has no field leads to its line', async () => {
  await open('command: x\nresorces: 1\n');
  await page.getByRole('button', { name: 'resorces' }).click();
  const area = page.getByLabel('Job file', { exact: true });
  await until(() => area.evaluate((text) => text === document.activeElement && text.selectionStart === 11), 'the cursor is there');
  assert.deepEqual(await page.locator('.lines .wrong').allInnerTexts(), ['2']);
});

test('a sweep that cannot be read is told at once and not written', async () => {
  await open('command: x ${{a}} ${{b}}\nsweep: {"(a, b)": [[1, 2]]}\n');
  assert.equal(await field('Sweep').inputValue(), '(a, b): (1, 2)');
  await field('Sweep').fill('(a, b): (1, 2), (3)');
  await page.getByText('takes 2 at a time').waitFor();
  assert.equal(await yaml(), 'command: x ${{a}} ${{b}}\nsweep: {"(a, b)": [[1, 2]]}\n');
  await field('Sweep').fill('(a, b):\n(1, 2)\n(3, 4)\n');
  await page.getByText('Ready: 2 runs').waitFor();
  await page.getByRole('tab', { name: /^Runs/ }).click();
  assert.deepEqual(await page.locator('[role=tabpanel] tbody td.mono').allInnerTexts(), ['1', '2', '3', '4']);
});

test('the dry run shows the request, and the code what travels', async () => {
  await open('cluster: lab\nresources: {gpus_per_node: 1}\ncode: {ignore: [notes]}\ncommand: python train.py\n');
  await ready();
  await page.getByRole('button', { name: 'Dry run' }).click();
  await page.getByText('#SBATCH --gpus-per-node=1').waitFor();
  await page.getByRole('tab', { name: 'Code' }).click();
  await page.getByText('419 files, 84.0 MB').waitFor();
  await page.getByText('notes of --ignore').or(page.getByText('`notes` of --ignore')).first().waitFor();
  await page.getByRole('tab', { name: 'Same in a terminal' }).click();
  await page.getByText('tow submit -f job.yaml').first().waitFor();
});

test('submitting shows how far it is, and goes to the run', async () => {
  await open('name: quick\ncluster: lab\ncommand: python train.py\n', { options: { after: '@', in_place: false, any_size: false } });
  await ready();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('progressbar').waitFor();
  await page.getByRole('heading', { level: 1, name: /quick/ }).waitFor();
  const sent = callsOf('submit').at(-1).args;
  assert.deepEqual(sent, { file: '-', input: 'name: quick\ncluster: lab\ncommand: python train.py\n', after: '@' });
  const message = page.getByRole('status').filter({ hasText: 'submitted to lab' });
  await message.getByRole('button', { name: 'Logs' }).click();
  await until(() => page.url().endsWith('/logs'), page.url());
});

test('a sweep goes to the page of the sweep', async () => {
  await open('name: tries\ncluster: lab\nsweep: {lr: [1, 2]}\ncommand: python ${{lr}}\n');
  await ready();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await until(() => /#\/sweep\/tries-/.test(page.url()), page.url());
});

test('a submission can be given up while its code is sent', async () => {
  await open('cluster: lab\ncommand: slow\n');
  await ready();
  const before = ui.fake.world.runs.length;
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByText('sending the code').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('the submission was given up').waitFor();
  await until(() => callsOf('submit').at(-1).hasEnded, 'the end of the call');
  assert.equal(ui.fake.world.runs.length, before);
  await page.getByRole('button', { name: 'Submit', exact: true }).waitFor();
});

test('a submission can be given up while it is checked, and then nothing is sent', async () => {
  await open('cluster: lab\ncommand: python x.py\n');
  await ready();
  const before = callsOf('submit').length;
  let release;
  ui.fake.faults.holds = { 'job.check': new Promise((done) => (release = done)) };
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('the submission was given up').waitFor();
  release();
  ui.fake.faults.holds = null;
  await until(() => callsOf('job.check').at(-1).hasEnded, 'the end of the check');
  await ready();
  assert.equal(callsOf('submit').length, before);
});

test('a refusal stands beside the field that it names, or as a notice with help', async () => {
  await open('cluster: lab\nresources: {memory: 9T}\ncommand: refuse-memory\n');
  await ready();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await until(async () => (await field('Memory per node').getAttribute('aria-invalid')) === 'true');
  await open('cluster: lab\ncommand: no-quota\n');
  await ready();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByRole('alert').filter({ hasText: 'msroctovc' }).getByRole('button', { name: 'Help' }).click();
  await page.getByRole('dialog').getByText('tow login').waitFor();
});

test('a token is caught, is not kept, and moves to the secrets', async () => {
  const token = 'ghp_0123456789abcdefABCD';
  await open();
  await field('Script').fill(`export PAT=${token}\ngit clone https://x\n`);
  await page.getByText(/Line 2 holds what looks like a token/).waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(token), 'it is not kept');
  await page.getByRole('button', { name: 'Move it to secrets' }).click();
  await until(async () => (await yaml()) === 'environment:\n  secrets: [PAT]\nscript: |\n  git clone https://x\n', await yaml());
  assert.equal(await field('Secrets, by name').inputValue(), 'PAT');
});

test('a former submission is loaded, changed and compared with itself', async () => {
  await open();
  await page.getByRole('button', { name: 'Load…' }).click();
  const names = page.getByRole('dialog').locator('li strong');
  await names.first().waitFor();
  assert.deepEqual(await names.allInnerTexts(), ['grid', 'eval', 'vitl_contitrain']);
  await page.getByLabel('Find a submission').fill('lr 0.0003');
  await page.getByRole('dialog').getByRole('button', { name: /vitl_contitrain/ }).click();
  assert.equal(await field('Path').inputValue(), 'alice/work');
  await field('Time limit').fill('2h');
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.locator('.added', { hasText: 'time: 2h' }).waitFor();
  await page.locator('.removed', { hasText: 'time: 14d' }).waitFor();
});

test('a link names the run to start from', async () => {
  await open('', { address: '/submit?from=eval-1794731251-f8369a18' });
  await until(async () => (await field('Name').inputValue()) === 'eval');
  assert.ok(page.url().endsWith('#/submit'));
});

test('jobs are saved under names, overwritten only when asked, and deleted', async () => {
  await open('name: mine\ncommand: x\n');
  await page.getByRole('button', { name: 'Save as…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('saved as mine').waitFor();
  await page.getByRole('button', { name: 'Save as…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Overwrite' }).click();
  await field('Name').fill('other');
  await page.getByRole('button', { name: 'Load…' }).click();
  await page.getByRole('button', { name: 'Saved' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Load', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Load', exact: true }).click();
  await until(async () => (await field('Name').inputValue()) === 'mine');
});

test('a file of the disk is loaded, and one of another tool says where it belongs', async () => {
  await open();
  const choose = async (name, text) => {
    await page.getByRole('button', { name: 'Load…' }).click();
    await page.getByRole('button', { name: 'File' }).click();
    await page.getByLabel('A job file of this computer').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
  };
  await choose('job.yaml', 'name: from-disk\ncommand: x\n');
  await until(async () => (await field('Name').inputValue()) === 'from-disk');
  await choose('train.sbatch', '#!/bin/bash\n#SBATCH --nodes=2\nsrun x\n');
  await page.getByRole('button', { name: 'Convert it by its path' }).click();
  assert.equal(await page.getByLabel('Tool').inputValue(), 'sbatch');
  await page.getByLabel('Path of the file where tow runs').fill('train.sbatch');
  await page.getByRole('button', { name: 'Convert', exact: true }).click();
  await page.getByRole('button', { name: 'Load it' }).click();
  await until(async () => (await field('Name').inputValue()) === 'hoi_training_run1');
  assert.deepEqual(callsOf('import').at(-1).args, { tool: 'sbatch', files: ['train.sbatch'], dry_run: true });
});

test('what the cluster offers fills the lists, and what fails empties no other', async () => {
  await open('cluster: aml-west\ncommand: x\n');
  await page.locator('datalist option[value=ND96isr_H100_v5]').waitFor({ state: 'attached' });
  await page.getByText('Virtual clusters and workspaces').click();
  await page.getByRole('button', { name: 'Ask Azure what I may use' }).click();
  await page.getByText('64 of 64 used').waitFor();
  await page.getByText('does not answer').waitFor();
  await page.getByRole('button', { name: 'Run on sing' }).click();
  await until(async () => (await yaml()).includes('cluster: sing'));
  await page.getByText('nobody is signed in to cluster').first().waitFor();
  assert.equal(await page.getByRole('checkbox', { name: /^lab/ }).isEnabled(), true);
});

test('a new workspace is created beside that of the cluster', async () => {
  await open('cluster: aml-west\ncommand: x\n');
  await page.getByText('Virtual clusters and workspaces').click();
  await field('New workspace').fill('lab2');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText('the workspace lab2 was created').waitFor();
  const asked = callsOf('clusters').find(({ args }) => args.create_workspace);
  assert.deepEqual(asked.args, { create_workspace: 'lab2', cluster: 'aml-west' });
});

test('the code is synchronized alone', async () => {
  await open('code: {ignore: [notes]}\nio: {work: {datastore: research, path: alice/code}}\ncommand: x\n');
  await page.getByRole('heading', { name: 'Synchronization' }).click();
  await field('Target').fill('research:alice/code');
  await field('Leave out too').fill('wandb; tmp');
  await page.getByRole('button', { name: 'Synchronize' }).click();
  await page.getByText('code synchronized: 17 files').waitFor();
  assert.deepEqual(callsOf('sync').at(-1).args, { place: 'research:alice/code', ignore: ['notes', 'wandb', 'tmp'] });
});

const FULL = `name: all
cluster: [aml-west, lab]
resources: {nodes: 2, gpus_per_node: 8, time: soon, location: [westus3]}
io: {data: {datastore: research}}
environment: {image: {nvidia: a, amd: b}, env: {A: b}, setup: [a]}
copy: {datastore: research, subdirs: [a, b]}
code: {ignore: [data]}
retry: {when: [node_failed], max: 3}
hold_on_failure: 2h
sweep: {lr: [1, 2]}
script: |
  export PAT=ghp_0123456789abcdefABCD
  python train.py
`;

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1440, 400]) {
    test(`it can be used by everybody, in ${colorScheme}, ${width} wide`, async () => {
      await open(FULL, { view: width > 1000 ? 'both' : 'form' });
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.getByText(/to mend before/).waitFor();
      assert.deepEqual(await violations(page), []);
      await page.getByRole('button', { name: 'Load…' }).click();
      await page.getByRole('dialog').locator('li strong').first().waitFor();
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press('Escape');
      for (const tab of ['Runs', 'Code', 'Same in a terminal']) {
        await page.getByRole('tab', { name: tab }).click();
        await page.getByRole('tabpanel').locator('p, h3').first().waitFor();
        assert.deepEqual(await violations(page), []);
      }
      const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!wider, 'the page is wider than the window');
      assert.deepEqual(page.complaints, []);
    });
  }
}
