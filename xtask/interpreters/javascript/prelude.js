// What every script has of Node's: `console`, `process`, timers, `require`. Kept short, since each start reads it; whatever
// else scripts may ask for is in `library.js`, which is read when one does.
import * as std from "qjs:std";
import * as os from "qjs:os";

const environment = std.getenviron();
const library = globalThis.__library;
delete globalThis.__library;
let known;
const more = () => known ??= library()(std, os, environment);

// What most scripts say is text and numbers.
function said(value) {
  switch (typeof value) {
    case "string": return value;
    case "number": return Object.is(value, -0) ? "-0" : String(value);
    case "boolean": case "undefined": return String(value);
    default: return value === null ? "null" : undefined;
  }
}
function format(...parts) {
  const plain = parts.map(said);
  if (plain.includes(undefined) || (parts.length > 1 && typeof parts[0] === "string" && parts[0].includes("%"))) return more().format(...parts);
  return plain.join(" ");
}

const writer = (file, descriptor) => ({
  write(text) { file.puts(String(text)); file.flush(); return true; },
  isTTY: os.isatty(descriptor),
  fd: descriptor,
});
const out = writer(std.out, 1), err = writer(std.err, 2);
const say = (stream) => (...parts) => void stream.write(format(...parts) + "\n");
const timers = new Map();
globalThis.console = {
  log: say(out), info: say(out), debug: say(out), dir: (value) => out.write(more().inspect(value, 1) + "\n"),
  error: say(err), warn: say(err), trace: say(err),
  table: say(out), group: say(out), groupEnd() {},
  assert(held, ...parts) { if (!held) say(err)("Assertion failed:", ...parts); },
  time(name = "default") { timers.set(name, os.now()); },
  timeEnd(name = "default") { say(out)(`${name}: ${((os.now() - timers.get(name)) / 1000).toFixed(3)}ms`); },
};

const started = os.now();
globalThis.process = {
  argv: ["node", ...scriptArgs], argv0: "node", execArgv: [], pid: 1, platform: "wasi", arch: "wasm32",
  env: environment, version: "v22.0.0", versions: { quickjs: "ng" }, exitCode: undefined,
  stdout: out, stderr: err, stdin: { fd: 0, isTTY: os.isatty(0) },
  cwd: () => environment.PWD ?? "/",
  exit(code) { std.out.flush(); std.exit(Number(code ?? this.exitCode ?? 0)); },
  nextTick: (call, ...parts) => queueMicrotask(() => call(...parts)),
  hrtime: Object.assign(() => { const now = os.now(); return [Math.floor(now / 1e6), (now % 1e6) * 1000]; }, { bigint: () => BigInt(Math.round(os.now() * 1000)) }),
  uptime: () => (os.now() - started) / 1e6,
  memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0 }),
  on() { return this; }, once() { return this; }, emitWarning: say(err),
};
Object.assign(globalThis, {
  global: globalThis,
  setTimeout: (call, time = 0, ...parts) => os.setTimeout(() => call(...parts), time),
  clearTimeout: (timer) => { if (timer !== undefined && timer !== null) os.clearTimeout(timer); },
  setImmediate: (call, ...parts) => os.setTimeout(() => call(...parts), 0),
  setInterval: (call, time = 0, ...parts) => { const holder = {}; const again = () => { holder.timer = os.setTimeout(() => { again(); call(...parts); }, time); }; again(); return holder; },
  clearInterval: (holder) => { if (holder) os.clearTimeout(holder.timer); },
  structuredClone: globalThis.structuredClone ?? ((value) => JSON.parse(JSON.stringify(value))),
});

const main = scriptArgs[0] && scriptArgs[0] !== "-" ? scriptArgs[0] : "./[eval]";
const folder = main.includes("/") ? main.slice(0, main.lastIndexOf("/")) || "/" : ".";
globalThis.require = (name) => more().requireFrom(folder)(name);
globalThis.__filename = main;
globalThis.__dirname = folder;
globalThis.module = { exports: {}, id: "." };
globalThis.exports = globalThis.module.exports;
globalThis.require.main = globalThis.module;
