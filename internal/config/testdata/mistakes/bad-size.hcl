journal {
  limit   = "1 gigabyte"
  reserve = 0
}
