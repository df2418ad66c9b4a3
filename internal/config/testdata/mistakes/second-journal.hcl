journal {
  limit = "1GiB"
}
journal {
  reserve = "64MiB"
}
