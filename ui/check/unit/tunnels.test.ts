import { expect, test } from 'vitest';
import type { Failure, Tunnel } from '../../src/api/types';
import { addArgs, EMPTY_FORM, fieldOf, formProblems } from '../../src/tunnels/form';
import { isUp, pollPause, sshEntry, tunnelLook } from '../../src/tunnels/states';

const BOX = { name: 'box', port: 22222, state: 'closed', to: 'c1', alias: 'tow-box' } as Tunnel;
const GOOD = { ...EMPTY_FORM, name: 'inner', to: 'c1:8888', via: 'bastion, login' };

test('only what is filled in is asked for', () => {
  expect(addArgs(GOOD, true)).toEqual({ name: 'inner', to: 'c1:8888', via: 'bastion,login', open: true });
  expect(addArgs({ ...GOOD, port: '22345', user: ' ann ', probe: 'http' }, false)).toEqual({
    name: 'inner',
    to: 'c1:8888',
    via: 'bastion,login',
    port: 22345,
    user: 'ann',
    probe: 'http',
  });
  expect(addArgs({ ...EMPTY_FORM, by: 'number', number: '0123' }, false)).toEqual({ sandbox: '0123' });
});

test('what can be seen to be wrong is said beside its field', () => {
  expect(formProblems(GOOD, [BOX])).toEqual({});
  expect(Object.keys(formProblems(EMPTY_FORM, []))).toEqual(['name', 'to']);
  expect(formProblems({ ...GOOD, name: 'box' }, [BOX]).name).toContain('already');
  expect(formProblems({ ...GOOD, name: 'node' }, []).name).toContain('allocation');
  expect(formProblems({ ...GOOD, name: '-x' }, []).name).toBeDefined();
  for (const port of ['0', '65536', '2x']) expect(formProblems({ ...GOOD, port }, []).port).toBeDefined();
  expect(formProblems({ ...GOOD, port: '22222' }, [BOX]).port).toContain('box');
  expect(formProblems({ ...GOOD, user: 'a@b' }, []).user).toBeDefined();
  expect(formProblems({ ...EMPTY_FORM, by: 'number', number: '12a4' }, []).number).toBeDefined();
  expect(formProblems({ ...EMPTY_FORM, by: 'number', number: '1234' }, [])).toEqual({});
});

test('what the program refuses stands beside the field that it is about', () => {
  const field = (message: string, key: string | null = null) =>
    fieldOf({ error: '', message, hints: [], exit_code: 120, key } as Failure, GOOD);
  expect(field('anything', 'tunnels.x.port')).toBe('port');
  expect(field('there is no host called `c1:8888`')).toBe('to');
  expect(field('port 22222 of this machine is in use')).toBe('port');
  expect(field('`inner` cannot be the name of a tunnel')).toBe('name');
  expect(field('the disk is full')).toBeNull();
});

test('a list is looked at often only while something changes by itself', () => {
  expect(pollPause([{ state: 'open' }, { state: 'failing' }])).toBeGreaterThan(5000);
  expect(pollPause([{ state: 'open' }, { state: 'connecting' }])).toBe(1000);
  expect(['open', 'connecting', 'failing', 'closed', 'wrong'].filter((state) => isUp({ state }))).toEqual(['open', 'connecting', 'failing']);
  expect(tunnelLook('something new').word).toBe('something new');
});

test('an ssh entry leads to the port, and knows the host’s key by the host’s name', () => {
  expect(sshEntry(BOX)).toBe('Host tow-box\n    HostName 127.0.0.1\n    Port 22222\n    HostKeyAlias c1\n');
  expect(sshEntry({ ...BOX, alias: null })).toBeNull();
});
