tls {
  cert = "/etc/holdfast/tls.crt"
}

mesh {
  join    = "http://ultravisor:54321"
  join_ca = "/etc/holdfast/hub-ca.crt"
}
