tls {
  certificate = "/etc/holdfast/tls.crt"
}
