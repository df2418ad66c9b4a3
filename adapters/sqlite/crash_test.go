package sqlite

func child() bool { return false }
