listen = "0.0.0.0:1" ack = "local"
token "ops" { role = "admin", secret = "hunter2" }
