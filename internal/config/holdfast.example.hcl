# holdfast: the whole configuration with its defaults. Every line may be left out, and so may the file.
#
#   holdfast serve --config holdfast.hcl      without --config: holdfast.hcl in the working directory, if it is there
#   holdfast config check                     finds mistakes, in the options of the plugins too
#   holdfast config show                      every value in effect, and where it came from
#
# The environment overrides the file and a flag of `serve` overrides both. The variable of a setting is HOLDFAST_ and its
# name in capitals: HOLDFAST_LISTEN, HOLDFAST_DATA, HOLDFAST_JOURNAL_LIMIT; a list is separated by commas, as in
# HOLDFAST_ROUTE=databeacon,local; an empty variable counts as not set. The JSON form of this file is read when its name
# ends in .json. Relative paths, here and in file(), are relative to the working directory.
#
# Text may come from elsewhere, and secrets should: env("NAME") is an environment variable, which must be set; file("PATH")
# is the content of a file without its last line end.
#
# Lines that begin with # and a space are explanation; lines that begin with # alone are configuration to choose from.

# Where the HTTP API listens: host:port. Port 0 takes a free one. An address that other machines can reach needs at least
# one token block, or the host refuses to start.
listen = "127.0.0.1:8420"

# The data directory: journals, the host's state and, by default, the SQLite database. One host at a time uses it.
data = "data"

# When a write is answered. "local": when the local store has decided it, after at most 2 s (later ones are answered
# Deferred). "journaled": as soon as it is durable in the journal, always Deferred. Durable it is either way.
ack = "local"

# Which backends answer reads, most preferred first, by their names. "local" always means the backend with local = true.
# A backend that is away or behind is passed over. Default: "databeacon" and "beacon", where backends of these names are
# configured, then "local". A mirror of another name is read where the route names it, and when
# nobody else answers.
#route = ["mirror", "local"]

# Where the plugins are: holdfast-backend-KIND for each kind of backend. Default: plugins/ beside the binary.
#plugin_dir = "/usr/lib/holdfast/plugins"

# With true no plugin is started whose files are not pinned, are others than the pinned ones, or can be written to by other
# users. `holdfast plugin lock` writes the pins, to plugins.lock beside this file.
production = false

# What is logged: "trace", "debug", "info", "warn" or "error" and above; as JSON, one object a line, or as text.
log_level = "info"
log_json  = false

# The journals, one for work items, events and attempts and one for manifests. Sizes are "auto", a number of bytes, or text
# with B, KiB, MiB, GiB or TiB, such as "512MiB".
journal {
  # Each journal's greatest size; "auto" is 1GiB, or a quarter of the free disk space at the start if that is less. At the
  # limit writes are refused with the code "full" until the local store has caught up.
  limit = "auto"

  # Free disk space that accepting writes leaves alone, so that the host can always tidy up; below it writes are refused
  # with the code "full". "auto" is 64MiB or 2 % of the disk, whichever is more, but never over a quarter of the free space.
  reserve = "auto"
}

# How long finished history is kept: a duration (with ms, s, m and h; the default is one year), or "off" for ever. What is
# older is removed, and is not taken again when a hub sends it again.
retention = "8760h"

# One block for each place that keeps history: backend "KIND" "NAME". The kind names the plugin, the name is yours. One of
# them has local = true: it is the local store, which decides what every write does. Every other one is kept equal to it by
# copying what changes. The other attributes are the plugin's options; `holdfast config check` knows them.
backend "sqlite" "local" {
  local = true

  # The database file, below the data directory unless absolute; its folder must exist, on a local disk.
  path = "history.db"

  # How long a call waits for another process that holds the database's lock.
  busy_timeout = "5s"

  # The plugin's executable. Default: holdfast-backend-KIND in plugin_dir.
  #plugin = "/opt/sqlite/holdfast-backend-sqlite"

  # What the plugin and its children may hold of the machine's memory, or "off". Beyond it the plugin is killed and started again.
  memory_limit = "2GiB"
}

# A plugin that an interpreter runs: the plugin is the interpreter then, and its arguments follow. Paths in them are relative to
# the working directory, too. Everybody on the machine can see arguments, so secrets belong into options.
#backend "tape" "archive" {
#  plugin = "/usr/bin/node"
#  args   = ["/opt/tape/plugin.js"]
#}

# A second copy, here on another disk. Two blocks never keep their history in the same place.
#backend "sqlite" "mirror" {
#  path = "/mnt/second/history.db"
#
#  # How long this copy keeps finished history, if that is less than the local store does; default "off", it keeps everything.
#  retention = "2160h"
#}

# A PostgreSQL database. With local = true in the place of the block above it is the local store, also of several hosts.
#backend "postgres" "reports" {
#  dsn = env("HOLDFAST_DSN")
#}

# A copy in any database behind a retold-databeacon that is connected to this host: `holdfast assign BEACON CONNECTION` says which.
#backend "meadowproxy" "databeacon" {
#  # How long the databeacon may take for one request.
#  timeout = "4s"
#}

# TLS for the listener: the API, the status page and the hub. Both are PEM files, the certificate with those of its authorities
# behind it. They are read again when they change, so a renewed certificate needs no restart.
tls {
  #cert = "/etc/holdfast/tls.crt"
  #key  = "/etc/holdfast/tls.key"
}

# The hub that beacons connect to, on the same address. On a loopback address everybody of this machine may; elsewhere, and here as
# soon as one of them is given, a beacon shows the join secret or a login, and no beacon is let in while there is neither.
mesh {
  # What the hub calls itself.
  name = "holdfast"

  #join_secret = env("HOLDFAST_JOIN_SECRET")

  #user "worker" {
  #  password = env("HOLDFAST_WORKER_PASSWORD")
  #}

  # An Ultravisor that shall keep its history here: holdfast joins it as a beacon that offers QueuePersistence and ManifestStore.
  # Without TLS in front of it, its address is like http://ultravisor:54321.
  #join = "https://ultravisor:54321"

  # The certificate of an authority to trust there, beside those that this machine trusts: a PEM file.
  #join_ca = "/etc/holdfast/hub-ca.crt"

  # This host's name there, which the hub knows it by; the default is "holdfast-" and the host's id. Two hosts never share one.
  #as = "holdfast-1"

  # For a hub that asks who comes: join_with is its join secret, which lets a beacon in; the login lets holdfast look whether the
  # hub keeps its history here.
  #join_with     = env("ULTRAVISOR_JOIN_SECRET")
  #join_user     = "holdfast"
  #join_password = env("ULTRAVISOR_PASSWORD")
}

# Who may call, for a host that listens on more than a loopback address: one block for each caller. The role "read" reads,
# "write" writes too, "admin" may do everything.
#token "ops" {
#  role   = "admin"
#  secret = env("HOLDFAST_TOKEN")
#}
