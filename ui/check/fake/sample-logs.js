import { random } from './random.js';

const ESCAPE = '\u001b[';

export function trainingLog(rank, attempt) {
  const dice = random(rank * 31 + attempt);
  const lines = [
    `${ESCAPE}1mattempt ${attempt}, rank ${rank}${ESCAPE}0m`,
    'loading checkpoint out/last.pt',
    `${ESCAPE}33mWARNING${ESCAPE}0m the data loader has 2 workers; 12 are suggested`,
    `shards:   0%|          | 0/512\rshards:  41%|####      | 210/512\rshards: 100%|##########| 512/512`,
  ];
  for (let step = 0; step < 2000; step++) {
    const time = new Date(1794731248000 + step * 4000).toISOString();
    const loss = (4 / Math.log(step + 3) + dice.next() * 0.05).toFixed(4);
    lines.push(`${time} ${ESCAPE}32mINFO${ESCAPE}0m step ${step} loss ${ESCAPE}36m${loss}${ESCAPE}0m lr 3.0e-04 ${(310 + dice.below(40))} samples/s`);
  }
  return `${lines.join('\n')}\n`;
}

export function failedLog(rank) {
  const lines = [`rank ${rank} begins`];
  for (let step = 0; step < 120; step++) lines.push(`step ${step} ok`);
  lines.push(
    'Traceback (most recent call last):',
    '  File "/stage/code/eval.py", line 3, in <module>',
    '    from sklearn.metrics import f1_score',
    "ModuleNotFoundError: No module named 'sklearn'",
  );
  return `${lines.join('\n')}\n`;
}

export function hostileLog() {
  const colours = Array.from({ length: 16 }, (_, colour) => `${ESCAPE}38;5;${colour}m ${colour} ${ESCAPE}0m`);
  return [
    '<script>document.body.innerHTML = "owned"</script>',
    '<img src=x onerror="alert(1)">',
    'user\u202e txt.exe \u202c and zero\u200bwidth and \u2066isolate\u2069',
    `${ESCAPE}31mred${ESCAPE}0m ${ESCAPE}1;4mbold underlined${ESCAPE}0m ${ESCAPE}48;2;20;90;40;97m true colour ${ESCAPE}0m`,
    colours.join(''),
    `\u001b]0;window title\u0007title gone, \u001b]8;;http://evil.example\u001b\\link text\u001b]8;;\u001b\\ stays`,
    `${ESCAPE}2Jclear ${ESCAPE}10;10Hmove ${ESCAPE}?25lcursor`,
    'bell \u0007 null \u0000 backspace ab\u0008c',
    '{{constructor.constructor("alert(1)")()}} ${7*7} {@html x}',
    'a very long line '.repeat(400),
    '日本語のログ 한국어 العربية עברית 🚀',
    'tab\tseparated\tvalues',
    '',
  ].join('\n');
}
