package postgres

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// cells takes the present row of a result as Go values: string, int64, float64, bool, or nil for NULL. What a column's type is
// decides the server; a table that a databeacon made may have others than ours.
func cells(rows pgx.Rows, into []any) []any {
	fields := rows.FieldDescriptions()
	into = into[:0]
	for i, raw := range rows.RawValues() {
		into = append(into, cell(&fields[i], raw))
	}
	return into
}

func cell(field *pgconn.FieldDescription, raw []byte) any {
	if raw == nil {
		return nil
	}
	binaryForm := field.Format == pgtype.BinaryFormatCode
	switch field.DataTypeOID {
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID:
		if binaryForm {
			return integerOf(raw)
		}
		n, _ := strconv.ParseInt(string(raw), 10, 64)
		return n
	case pgtype.Float8OID:
		if binaryForm {
			return math.Float64frombits(binary.BigEndian.Uint64(raw))
		}
		f, _ := strconv.ParseFloat(string(raw), 64)
		return f
	case pgtype.BoolOID:
		if binaryForm {
			return raw[0] != 0
		}
		return raw[0] == 't'
	}
	return string(raw)
}

func integerOf(raw []byte) int64 {
	switch len(raw) {
	case 8:
		return int64(binary.BigEndian.Uint64(raw))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(raw)))
	}
	return int64(int16(binary.BigEndian.Uint16(raw)))
}
