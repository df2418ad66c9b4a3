package wire

import (
	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// pairs is a table between a word of ports and its number on the wire, read in both directions. A word or number that the
// table lacks gives the zero of the other side, which the receiving half refuses.
type pairs[P, W comparable] struct {
	out map[P]W
	in  map[W]P
}

func table[P, W comparable](out map[P]W) pairs[P, W] {
	in := make(map[W]P, len(out))
	for p, w := range out {
		in[w] = p
	}
	return pairs[P, W]{out: out, in: in}
}

var (
	families = table(map[ports.Family]pb.Family{
		ports.Queue:    pb.Family_FAMILY_QUEUE,
		ports.Manifest: pb.Family_FAMILY_MANIFEST,
	})
	kinds = table(map[ports.Kind]pb.Kind{
		ports.KindItem:     pb.Kind_KIND_ITEM,
		ports.KindEvent:    pb.Kind_KIND_EVENT,
		ports.KindAttempt:  pb.Kind_KIND_ATTEMPT,
		ports.KindManifest: pb.Kind_KIND_MANIFEST,
	})
	codes = table(map[ports.Code]pb.Code{
		ports.Invalid:       pb.Code_CODE_INVALID,
		ports.TooLarge:      pb.Code_CODE_TOO_LARGE,
		ports.NotFound:      pb.Code_CODE_NOT_FOUND,
		ports.Conflict:      pb.Code_CODE_CONFLICT,
		ports.Unauthorized:  pb.Code_CODE_UNAUTHORIZED,
		ports.Unavailable:   pb.Code_CODE_UNAVAILABLE,
		ports.BackendGone:   pb.Code_CODE_BACKEND_GONE,
		ports.Unimplemented: pb.Code_CODE_UNIMPLEMENTED,
		ports.Canceled:      pb.Code_CODE_CANCELED,
		ports.Deadline:      pb.Code_CODE_DEADLINE,
		ports.Full:          pb.Code_CODE_FULL,
		ports.Internal:      pb.Code_CODE_INTERNAL,
	})
	actions = table(map[ports.Action]pb.Action{
		ports.UpsertWorkItem:       pb.Action_ACTION_UPSERT_WORK_ITEM,
		ports.UpdateWorkItem:       pb.Action_ACTION_UPDATE_WORK_ITEM,
		ports.AppendEvent:          pb.Action_ACTION_APPEND_EVENT,
		ports.InsertAttempt:        pb.Action_ACTION_INSERT_ATTEMPT,
		ports.UpdateAttemptOutcome: pb.Action_ACTION_UPDATE_ATTEMPT_OUTCOME,
		ports.UpsertManifest:       pb.Action_ACTION_UPSERT_MANIFEST,
		ports.RemoveManifest:       pb.Action_ACTION_REMOVE_MANIFEST,
	})
	outcomes = table(map[ports.Outcome]pb.Outcome{
		ports.Stored:         pb.Outcome_OUTCOME_STORED,
		ports.AlreadyPresent: pb.Outcome_OUTCOME_ALREADY_PRESENT,
		ports.AlreadyAbsent:  pb.Outcome_OUTCOME_ALREADY_ABSENT,
		ports.Missing:        pb.Outcome_OUTCOME_MISSING,
		ports.Expired:        pb.Outcome_OUTCOME_EXPIRED,
		ports.Refused:        pb.Outcome_OUTCOME_REFUSED,
		ports.Late:           pb.Outcome_OUTCOME_LATE,
		ports.Early:          pb.Outcome_OUTCOME_EARLY,
	})
	optionTypes = table(map[ports.OptionType]pb.OptionType{
		ports.OptionString:   pb.OptionType_OPTION_TYPE_STRING,
		ports.OptionInt:      pb.OptionType_OPTION_TYPE_INT,
		ports.OptionBool:     pb.OptionType_OPTION_TYPE_BOOL,
		ports.OptionDuration: pb.OptionType_OPTION_TYPE_DURATION,
		ports.OptionSize:     pb.OptionType_OPTION_TYPE_SIZE,
	})
)
