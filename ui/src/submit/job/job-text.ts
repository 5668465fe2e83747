import { Document, isMap, isScalar, isSeq, visit } from 'yaml';
import type { Job } from '../../api/types';
import { sorted } from './order';

const LONGEST_LINE = 72;

/** A job of the history as the text of a job file, without what says nothing. */
export function jobText(job: Job): string {
  const document = new Document(tidy(job, ''));
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && node.value.includes('\n')) node.type = 'BLOCK_LITERAL';
    },
    Seq(_, node) {
      const isFlat = node.items.every((item) => isScalar(item) || isSeq(item));
      node.flow = isFlat && JSON.stringify(node).length <= LONGEST_LINE && !JSON.stringify(node).includes('\\n');
    },
    Map(key, node) {
      // `{}` says more than nothing below a key.
      if (key !== null && node.items.length === 0) node.flow = true;
    },
  });
  return isMap(document.contents) && document.contents.items.length === 0
    ? ''
    : document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function tidy(value: unknown, within: string): unknown {
  if (Array.isArray(value) || value === null || typeof value !== 'object') return value;
  const object = value as Record<string, unknown>;
  const isFixed = within === '' || ['resources', 'environment', 'code', 'copy', 'retry'].includes(within);
  const names = isFixed ? sorted(within, Object.keys(object)) : Object.keys(object);
  const entries = names
    .map((name) => [name, tidy(object[name], within === 'io' ? 'one-io' : name)] as const)
    .filter(([, item]) => !isNothing(item));
  return Object.fromEntries(entries);
}

function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
