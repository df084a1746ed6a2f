// A context: takes cells on its input, runs each where those before it ran, and tells results on descriptor 3.
// It runs inside the sandbox, beside the code of the guest: whatever it tells is checked outside.
(() => {
  'use strict';
  const fs = require('fs');
  const inspector = require('inspector');
  const util = require('util');
  const { Worker } = require('worker_threads');
  // Cells come on what was the input; the code that they bring has none. And what it starts gets neither of the two.
  const moved = (number, flags) => {
    try { return fs.openSync('/proc/self/fd/' + number, flags); } catch { return number; }
  };
  const cells = moved(0, 'r'), results = moved(3, 'w');
  if (results !== 3) fs.closeSync(3);
  if (cells !== 0) { fs.closeSync(0); fs.openSync('/dev/null', 'r'); }
  const KINDS = ['text', 'html', 'markdown', 'latex', 'svg', 'json', 'png', 'jpeg', 'plotly'];
  const MOST_PART = 8 << 20, MOST_BYTES = 16 << 20, MOST_PARTS = 1000, MOST_TEXT = 1 << 20, MOST_ERROR = 60000;
  const session = new inspector.Session();
  session.connect();

  // What fails after a cell is over fails by itself: the context stays.
  process.on('uncaughtException', (error) => { console.error(error); });
  process.on('unhandledRejection', (error) => { console.error(error); });
  // It is told to the other thread, too, which can stop code that never comes back.
  process.on('SIGINT', () => {});

  const reader = new Worker(`
    const fs = require('fs'), inspector = require('inspector');
    const { parentPort, workerData } = require('worker_threads');
    const session = new inspector.Session();
    session.connectToMainThread();
    const input = fs.createReadStream(null, { fd: workerData });
    let read = Buffer.alloc(0), running = 0;
    parentPort.on('message', () => { running -= 1; });
    input.on('data', (bytes) => {
      read = Buffer.concat([read, bytes]);
      for (;;) {
        const end = read.indexOf(10);
        if (end < 0) return;
        const line = read.toString('utf8', 0, end);
        if (line === 'interrupt') {
          read = read.subarray(end + 1);
          if (running > 0) {
            parentPort.postMessage({ interrupt: true });
            session.post('Runtime.terminateExecution', () => {});
          }
          continue;
        }
        const [cell, length] = line.split(' ').map(Number);
        if (read.length < end + 1 + length) return;
        running += 1;
        parentPort.postMessage({ cell, code: read.toString('utf8', end + 1, end + 1 + length) });
        read = read.subarray(end + 1 + length);
      }
    });
    input.on('end', () => process.exit(0));
  `, { eval: true, workerData: cells });
  reader.on('exit', () => process.exit(0));
  reader.on('error', () => process.exit(1));

  let shown = [], bytes = 0, left = 0, now = null;
  const text = (value) => {
    const words = Buffer.from(String(value), 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(words.length);
    return Buffer.concat([length, words]);
  };
  const tell = (cell, kind, body) => {
    const head = Buffer.alloc(13);
    head.writeUInt32LE(9 + body.length, 0);
    head.writeUInt8(kind, 4);
    head.writeBigUInt64LE(BigInt(cell), 5);
    let frame = Buffer.concat([head, body]);
    while (frame.length > 0) frame = frame.subarray(fs.writeSync(results, frame));
  };
  const keep = (result, isValue, kind, data) => {
    const body = Buffer.isBuffer(data) ? data : Buffer.from(String(data), 'utf8');
    if (body.length > MOST_PART || bytes + body.length > MOST_BYTES || shown.length >= MOST_PARTS) { left += 1; return; }
    bytes += body.length;
    const head = Buffer.alloc(6);
    head.writeUInt32LE(result, 0);
    head.writeUInt8(isValue ? 1 : 0, 4);
    head.writeUInt8(KINDS.indexOf(kind), 5);
    shown.push([result, Buffer.concat([head, body])]);
  };
  const show = (value, isValue) => {
    const result = new Set(shown.map(([number]) => number)).size + left;
    let words = typeof value === 'string' && !isValue ? value : util.inspect(value, { depth: 4, maxArrayLength: 100 });
    if (words.length > MOST_TEXT) { words = words.slice(0, MOST_TEXT) + '…'; left += 1; }
    keep(result, isValue, 'text', words);
    if (value !== null && typeof value === 'object') {
      try {
        if (typeof value.toHTML === 'function') keep(result, isValue, 'html', value.toHTML());
        const plain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
        const written = plain ? JSON.stringify(value) : undefined;
        if (written !== undefined) keep(result, isValue, 'json', written);
      } catch { /* It has no such representation. */ }
    }
  };
  globalThis.display = (...values) => { values.forEach((value) => show(value, false)); };

  const reply = (error, interrupted) => {
    const { cell } = now;
    now = null;
    for (const [, part] of shown) tell(cell, 1, part);
    if (error) {
      const [name, value, trace] = error;
      tell(cell, 2, Buffer.concat([text(name), text(value), Buffer.from(trace, 'utf8')]));
    }
    const body = Buffer.alloc(6);
    body.writeUInt8(error ? 1 : 0, 0);
    body.writeUInt8(interrupted ? 1 : 0, 1);
    body.writeUInt32LE(left, 2);
    tell(cell, 3, body);
    reader.postMessage('done');
  };
  const INTERRUPTED = ['Interrupted', 'the cell was interrupted', 'Interrupted: the cell was interrupted\n'];
  const told = (error, cell) => {
    const is = util.types.isNativeError(error) || error instanceof Error;
    const name = is ? String(error.name) : 'Thrown';
    const value = is ? String(error.message) : util.inspect(error);
    let trace = is && typeof error.stack === 'string' ? error.stack : name + ': ' + value;
    // Frames of ours say nothing of the cell.
    trace = trace.split('\n').filter((line) => !/\(?(node:|\[eval\]|\[worker eval\])/.test(line)).join('\n') + '\n';
    return [name.slice(0, 200), value.slice(0, MOST_ERROR / 4), trace.slice(0, MOST_ERROR)];
  };

  // The value itself, which the inspector only speaks of.
  const VALUE = Symbol('value');
  const taken = (remote, use) => {
    if (!remote.objectId) {
      if (remote.type === 'undefined') return use(undefined);
      if (remote.unserializableValue !== undefined) {
        const special = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };
        const word = remote.unserializableValue;
        return use(word in special ? special[word] : BigInt(word.slice(0, -1)));
      }
      return use(remote.value);
    }
    globalThis[Symbol.for('belljar')] = (value) => { taken[VALUE] = value; };
    session.post('Runtime.callFunctionOn', {
      objectId: remote.objectId, functionDeclaration: 'function () { globalThis[Symbol.for("belljar")](this); }',
    }, () => {
      delete globalThis[Symbol.for('belljar')];
      const value = taken[VALUE];
      delete taken[VALUE];
      use(typeof value === 'object' && remote.type === 'symbol' ? value.valueOf() : value);
    });
  };

  reader.on('message', (message) => {
    if (message.interrupt) {
      // It waits for something, and does not run: the rest of it goes on by itself.
      if (now) reply(INTERRUPTED, true);
      return;
    }
    now = { cell: message.cell };
    const mine = now;
    shown = []; bytes = 0; left = 0;
    const expression = message.code + `\n//# sourceURL=cell-${message.cell}`;
    session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true, objectGroup: 'cells' },
      (error, answer) => {
        if (now !== mine) return;
        if (error) return reply(INTERRUPTED, true);
        const { result, exceptionDetails } = answer;
        if (exceptionDetails) {
          const thrown = exceptionDetails.exception || { type: 'string', value: exceptionDetails.text };
          return taken(thrown, (error) => reply(told(error, mine.cell), false));
        }
        taken(result, (value) => {
          try {
            if (value !== undefined) { show(value, true); globalThis._ = value; }
            session.post('Runtime.releaseObjectGroup', { objectGroup: 'cells' }, () => {});
            reply(null, false);
          } catch (error) {
            if (now === mine) reply(told(error, mine.cell), false);
          }
        });
      });
  });
})();
