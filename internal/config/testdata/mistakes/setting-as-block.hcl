listen {
  port = 8420
}
