journal {
  limt = "1GiB"
}
