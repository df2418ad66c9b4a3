jurnal {
  limit = "1GiB"
}
