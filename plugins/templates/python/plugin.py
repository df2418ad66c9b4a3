#!/usr/bin/env python3
"""The backend "tape" keeps history in memory: put your store in the place of Store._rows."""
import json, os, secrets, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor

if os.environ.get("HOLDFAST_PLUGIN") != "5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24":
    sys.exit(f'{sys.argv[0]}: a backend plugin of holdfast (protocol 1). It is started by holdfast, not by hand.\n\n'
             f'Name it in the configuration:\n\n  backend "tape" "NAME" {{\n    plugin = "{os.path.abspath(__file__)}"\n  }}')

import grpc  # not before: who starts it by hand may not have it
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# The messages of the contract are made at run time, of the descriptors in backend.binpb.
POOL, PACKAGE = descriptor_pool.DescriptorPool(), "holdfast.backend.v1."
with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "backend.binpb"), "rb") as descriptors:
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors.read()).file:
        POOL.AddSerializedFile(file.SerializeToString())
class_of = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(POOL).GetPrototype
ErrorDetail, Position, Status = (class_of(POOL.FindMessageTypeByName(n)) for n in (PACKAGE + "ErrorDetail", PACKAGE + "Position", "google.rpc.Status"))
ITEM, EVENT, ATTEMPT, MANIFEST = 1, 2, 3, 4  # Kind
CODES = {"INVALID_ARGUMENT": 1, "OUT_OF_RANGE": 2, "NOT_FOUND": 3, "FAILED_PRECONDITION": 4, "UNAVAILABLE": 6}  # Code by status
OPT_OUTS = {"durability": "memory ends with its process", "lists": "it reads by key", "readers/event-bodies": "it gives events whole"}
MESSAGE, PAGE = 72 << 20, 16 << 20  # bytes

def log(level, text, **more):
    rank = {"trace": 1, "debug": 2, "info": 3, "warn": 4, "error": 5, "off": 6}
    if rank[level] >= rank.get(os.environ.get("HOLDFAST_LOG_LEVEL"), 0):
        print(json.dumps({"@level": level, "@message": text, **more}), file=sys.stderr, flush=True)

class Refused(Exception):
    def __init__(self, status, text, **more):
        self.status, self.detail = grpc.StatusCode[status], ErrorDetail(code=CODES[status], message=text, **more)

class Store:
    """Keeps rows as they came, so that every byte comes back. Each process has a store of its own, with an id of its own.
    The public methods are those of the service; what is not here is unimplemented."""

    def __init__(self):
        self._id, self._phase, self._rows = secrets.token_hex(16), "new", {}
        self._at = {family: Position(store_id=self._id) for family in (0, 1, 2)}

    def Describe(self, _):
        return dict(kind="tape", version="0.1", summary="Keeps history in memory.", families=[1, 2], contained=True,
                    powers=["ItemReader", "EventReader", "AttemptReader", "ManifestReader", "Exporter", "Drainer"],
                    options=[dict(name="max_body", type=5, default="64MiB", help="the largest record that it takes")],
                    opt_outs=[dict(of=of, reason=reason) for of, reason in OPT_OUTS.items()])

    def Configure(self, request):
        self._max_body = json.loads(request.options or "{}").get("max_body", 64 << 20)
        if not isinstance(self._max_body, int) or self._max_body < 1:
            raise Refused("INVALID_ARGUMENT", "must be a size above 0", field="max_body")
        self._phase = "ready"

    def Drain(self, _): self._phase = "drained"
    def Probe(self, _): pass
    def Position(self, request): return dict(position=self._at[request.family])

    def Put(self, request):
        at, done = self._at[request.family], 0
        if request.HasField("after") and (request.after.store_id, seqs(request.after)) != (self._id, seqs(at)):
            return dict(error=Refused("FAILED_PRECONDITION", f"this is store {self._id} at {seqs(at)}", field="Position").detail)
        for row in request.rows:
            if len(row.body) > self._max_body:
                return dict(done=done, error=Refused("OUT_OF_RANGE", "is too large", limit=self._max_body, size=len(row.body)).detail)
            record, done = self._rows.setdefault(row.key, {}), done + 1
            record[row.kind, row.guid, row.number] = row
            if row.gone:
                del record[row.kind, row.guid, row.number]
        if request.HasField("position"):  # together with the rows
            self._at[request.family] = Position(store_id=self._id, epoch=request.position.epoch, seqs=request.position.seqs)
        return dict(done=done)

    def Item(self, request, kind=ITEM):
        for row in self._of(kind, request.key):
            return dict(row=row)
        raise Refused("NOT_FOUND", "there is none with this key")

    def Manifest(self, request): return self.Item(request, MANIFEST)
    def Events(self, q): return page(self._of(EVENT, q.key), lambda row: (row.order_key, row.guid, 0), q, q.desc)
    def Attempts(self, q): return page(self._of(ATTEMPT, q.key), lambda row: (row.key, row.key, row.number), q)

    def Export(self, request):
        rows = [row for record in self._rows.values() for row in record.values() if (row.kind == MANIFEST) == (request.family == 2)]
        return page(rows, lambda row: (row.key, f"{row.kind}{row.guid and row.order_key + row.guid}", row.number), request)

    def _of(self, kind, key):
        return [row for row in self._rows.get(key, {}).values() if row.kind == kind]

def seqs(position):
    return {host: seq for host, seq in position.seqs.items() if seq}

def page(rows, place, request, desc=False):
    """The rows in the order of their places, from behind request.after, cut at the limit and at 16 MiB."""
    taken, size, after = [], 0, (request.after.sort, request.after.key, request.after.number)
    for row in sorted(rows, key=place, reverse=desc):
        if request.HasField("after") and (place(row) >= after if desc else place(row) <= after):
            continue
        size += len(row.body)
        if taken and (len(taken) == (request.limit or 500) or size > PAGE):
            return dict(page=dict(rows=taken, next=dict(zip(("sort", "key", "number"), place(taken[-1])))))
        taken.append(row)
    return dict(page=dict(rows=taken))

def serve(store, lock, stop):
    def served(method):
        answer = class_of(method.output_type)

        def call(request, context):
            try:
                with lock:
                    if method.name not in ("Describe", "Drain") and store._phase != ("new" if method.name == "Configure" else "ready"):
                        raise Refused("UNAVAILABLE", f"the plugin is {store._phase}")
                    return answer(**(getattr(store, method.name)(request) or {}))
            except Refused as refused:
                inner = dict(type_url=f"type.googleapis.com/{PACKAGE}ErrorDetail", value=refused.detail.SerializeToString())
                status = Status(code=refused.status.value[0], message=refused.detail.message, details=[inner])
                context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
                context.abort(refused.status, refused.detail.message)
        return grpc.unary_unary_rpc_method_handler(call, class_of(method.input_type).FromString, answer.SerializeToString)

    plain = grpc.unary_unary_rpc_method_handler  # of bytes
    services = {
        PACKAGE + "Backend": {m.name: served(m) for m in POOL.FindServiceByName(PACKAGE + "Backend").methods if hasattr(store, m.name)},
        "grpc.health.v1.Health": {"Check": plain(lambda *_: b"\x08\x01")},  # SERVING
        "plugin.GRPCController": {"Shutdown": plain(lambda *_: stop.set() or b"")},
        "plugin.GRPCStdio": {"StreamStdio": grpc.unary_stream_rpc_method_handler(lambda *_: iter(()))},  # all goes to stderr
    }
    server = grpc.server(ThreadPoolExecutor(8), [grpc.method_handlers_generic_handler(*s) for s in services.items()], options=[
        ("grpc.max_receive_message_length", MESSAGE), ("grpc.max_send_message_length", MESSAGE)])
    path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "s")
    server.add_insecure_port("unix:" + path)
    server.start()
    print(f"1|1|unix|{path}|grpc|", flush=True)
    log("info", "ready", store=store._id)
    stop.wait()
    server.stop(1).wait()

for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)  # the host says when to stop
threading.Thread(target=lambda: (open(0, "rb", 0).readall(), os._exit(0)), daemon=True).start()  # stdin ends: the host is gone
serve(Store(), threading.Lock(), threading.Event())
