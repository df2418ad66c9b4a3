#!/usr/bin/env node
// The backend "tape" keeps history in memory: put your store in the place of the map of rows.
if (process.env.HOLDFAST_PLUGIN !== '5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24') {
  console.error(`${__filename}: a backend plugin of holdfast (protocol 1). It is started by holdfast, not by hand.\n
Name it in the configuration:\n\n  backend "tape" "NAME" {\n    plugin = "${__filename}"\n  }`);
  process.exit(1);
}

const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const protobuf = require('protobufjs');

// The messages of the contract are made at run time, of backend.proto.
const file = `${__dirname}/backend.proto`;
const contract = loader.loadSync(file, { keepCase: true, longs: String, defaults: true });
const ErrorDetail = protobuf.loadSync(file).lookupType('holdfast.backend.v1.ErrorDetail');
const { Status } = protobuf.parse(`syntax = "proto3"; message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }`, { keepCase: true }).root.nested;
const CODES = { INVALID_ARGUMENT: 1, OUT_OF_RANGE: 2, NOT_FOUND: 3, FAILED_PRECONDITION: 4, UNAVAILABLE: 6 }; // Code of each status
const ITEM = 1, EVENT = 2, ATTEMPT = 3, MANIFEST = 4, MESSAGE = 72 << 20, PAGE = 16 << 20; // Kind; bytes

function log(level, message, more) {
  const rank = (l) => ['trace', 'debug', 'info', 'warn', 'error', 'off'].indexOf(l);
  if (rank(level) >= rank(process.env.HOLDFAST_LOG_LEVEL)) console.error(JSON.stringify({ '@level': level, '@message': message, ...more }));
}

// A refusal as gRPC carries it: a status whose details hold an ErrorDetail.
function refusal(status, message, more) {
  const value = ErrorDetail.encode({ code: CODES[status], message, ...more }).finish();
  const details = [{ type_url: 'type.googleapis.com/holdfast.backend.v1.ErrorDetail', value }];
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(Status.encode({ code: grpc.status[status], message, details }).finish()));
  return { code: grpc.status[status], details: message, metadata };
}

// Rows are kept as they came, so that every byte comes back. Each process has a store of its own, with an id of its own.
const id = require('crypto').randomUUID(), rows = new Map(), at = { 1: {}, 2: {} };
let phase = 'new', maxBody;

// What has no function here is unimplemented.
const calls = {
  Describe: () => ({
    kind: 'tape', version: '0.1', summary: 'Keeps history in memory.', families: [1, 2], contained: true,
    powers: ['ItemReader', 'EventReader', 'AttemptReader', 'ManifestReader', 'Exporter', 'Drainer'],
    options: [{ name: 'max_body', type: 5, default: '64MiB', help: 'the largest record that it takes' }],
    opt_outs: Object.entries({ durability: 'memory ends with its process', lists: 'it reads by key', 'readers/event-bodies': 'it gives events whole' })
      .map(([of, reason]) => ({ of, reason })),
  }),
  Configure({ options }) {
    ({ max_body: maxBody = 64 << 20 } = JSON.parse(options.length ? options : '{}'));
    if (!(maxBody > 0)) throw refusal('INVALID_ARGUMENT', 'must be a size above 0', { field: 'max_body' });
    phase = 'ready';
  },
  Probe: () => {},
  Drain: () => { phase = 'drained'; },
  Position: ({ family }) => ({ position: { ...at[family], store_id: id } }),
  Put({ family, rows: batch, position, after }) {
    if (after && (after.store_id !== id || seqs(after) !== seqs(at[family]))) {
      return { error: { code: CODES.FAILED_PRECONDITION, message: `this is store ${id} at ${seqs(at[family])}`, field: 'Position' } };
    }
    for (const [done, row] of batch.entries()) {
      if (row.body.length > maxBody) return { done, error: { code: CODES.OUT_OF_RANGE, message: 'is too large', limit: maxBody, size: row.body.length } };
      if (!rows.has(row.key)) rows.set(row.key, new Map());
      const record = [row.kind, row.guid, row.number].join();
      if (row.gone) rows.get(row.key).delete(record); else rows.get(row.key).set(record, row);
    }
    if (position) at[family] = position; // together with the rows
    return { done: batch.length };
  },
  Item: ({ key }) => one(ITEM, key),
  Manifest: ({ key }) => one(MANIFEST, key),
  Events: (query) => page(of(EVENT, query.key), (row) => ({ sort: row.order_key, key: row.guid, number: 0 }), query),
  Attempts: (query) => page(of(ATTEMPT, query.key), (row) => ({ sort: row.key, key: row.key, number: row.number }), query),
  Export: (query) => page([...rows.values()].flatMap((r) => [...r.values()]).filter((row) => (row.kind === MANIFEST) === (query.family === 2)),
    (row) => ({ sort: row.key, key: row.kind + (row.guid && row.order_key + row.guid), number: row.number }), query),
};

const seqs = ({ seqs: s = {} }) => Object.keys(s).filter((host) => s[host] !== '0').sort().map((host) => `${host}:${s[host]}`).join();
const of = (kind, key) => [...(rows.get(key) || new Map()).values()].filter((row) => row.kind === kind);

function one(kind, key) {
  for (const row of of(kind, key)) return { row };
  throw refusal('NOT_FOUND', 'there is none with this key');
}

// The rows in the order of their places, from behind query.after, cut at the limit and at 16 MiB.
function page(list, place, { after, limit, desc }) {
  const bytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const order = (a, b) => (desc ? -1 : 1) * (bytes(a.sort, b.sort) || bytes(a.key, b.key) || Number(BigInt(a.number) - BigInt(b.number)));
  const left = list.filter((row) => !after || order(place(row), after) > 0).sort((a, b) => order(place(a), place(b)));
  let taken = 0, size = 0;
  while (taken < left.length && taken < (+limit || 500) && ((size += left[taken].body.length) <= PAGE || taken === 0)) taken++;
  return { page: { rows: left.slice(0, taken), next: taken < left.length ? place(left[taken - 1]) : null } };
}

const served = ([name, call]) => [name, ({ request }, answer) => {
  try {
    const when = { Describe: phase, Drain: phase, Configure: 'new' }[name] || 'ready';
    if (phase !== when) throw refusal('UNAVAILABLE', `the plugin is ${phase}`);
    answer(null, call(request) || {});
  } catch (err) {
    answer(err);
  }
}];

const server = new grpc.Server({ 'grpc.max_receive_message_length': MESSAGE, 'grpc.max_send_message_length': MESSAGE });
const plain = (path, handle, responseStream = false) => server.addService(
  { call: { path, responseStream, requestStream: false, requestDeserialize: (b) => b, responseSerialize: (b) => b } }, { call: handle });
plain('/grpc.health.v1.Health/Check', (_, answer) => answer(null, Buffer.from([8, 1]))); // SERVING
plain('/plugin.GRPCController/Shutdown', (_, answer) => { answer(null, Buffer.alloc(0)); server.tryShutdown(() => process.exit(0)); });
plain('/plugin.GRPCStdio/StreamStdio', (call) => call.end(), true); // everything goes to stderr
server.addService(contract['holdfast.backend.v1.Backend'], Object.fromEntries(Object.entries(calls).map(served)));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {}); // the host says when to stop
process.stdin.resume().on('end', () => process.exit(0)); // the host is gone
const socket = `${process.env.PLUGIN_UNIX_SOCKET_DIR}/s`;
server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (err) => {
  if (err) throw err;
  console.log(`1|1|unix|${socket}|grpc|`); // the handshake
  log('info', 'ready', { store: id });
});
