import { expect, test } from 'vitest';
import { Asked } from '../../src/api/asked.svelte';
import { CallFailed } from '../../src/api/failure';
import { Task } from '../../src/api/task.svelte';
import { settled, TestTransport } from './fake-transport';

test('an answer stays while a new one is on its way, and if none comes', async () => {
  let fail = false;
  const asked = new Asked(async () => {
    if (fail) throw new Error('no');
    return 1;
  });
  await asked.refresh();
  expect([asked.value, asked.isAsking]).toEqual([1, false]);
  fail = true;
  await asked.refresh();
  expect(asked.value).toBe(1);
  expect(asked.error).toBeInstanceOf(Error);
  fail = false;
  await asked.refresh();
  expect(asked.error).toBeNull();
});

test('of two questions the later counts, whichever is answered first', async () => {
  const open: ((value: string) => void)[] = [];
  const asked = new Asked(() => new Promise<string>((resolve) => open.push(resolve)));
  const first = asked.refresh();
  const second = asked.refresh();
  open[1]?.('new');
  await second;
  open[0]?.('old');
  await first;
  expect(asked.value).toBe('new');
  expect(asked.isAsking).toBe(false);
});

test('a task that fails keeps the error, and one that is given up says so', async () => {
  const transport = new TestTransport();
  const task = new Task<{ done: boolean }>();
  transport.answers['url'] = () => {
    throw new CallFailed({ error: 'x', message: 'no key', hints: [], exit_code: 123 });
  };
  expect(await task.run('url', {})).toBeNull();
  expect(task.error).toBeInstanceOf(CallFailed);
  let answer: (value: object) => void = () => undefined;
  transport.answers['url'] = () => new Promise((resolve) => (answer = resolve));
  const running = task.run('url', {});
  expect([task.isRunning, task.error]).toEqual([true, null]);
  task.cancel();
  answer({});
  await running;
  await settled();
  expect([task.isRunning, task.wasCancelled, task.answer]).toEqual([false, true, null]);
});
