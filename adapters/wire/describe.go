package wire

import (
	"google.golang.org/protobuf/types/known/durationpb"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

func descriptionOut(d ports.Description) *pb.DescribeResponse {
	m := &pb.DescribeResponse{Kind: d.Kind, Version: d.Version, Summary: d.Summary, Powers: d.Powers, Slots: int64(max(d.Slots, 0)), Contained: d.Contained}
	for _, f := range d.Families {
		m.Families = append(m.Families, families.out[f])
	}
	for _, o := range d.Options {
		m.Options = append(m.Options, &pb.Option{
			Name: o.Name, Type: optionTypes.out[o.Type], Default: o.Default, Required: o.Required, Secret: o.Secret,
			Help: o.Help, Example: o.Example,
		})
	}
	for _, o := range d.OptOuts {
		m.OptOuts = append(m.OptOuts, &pb.OptOut{Of: o.Of, Reason: o.Reason})
	}
	return m
}

// descriptionIn leaves out families and powers that a newer plugin may know and this host does not. An option of an unknown
// type keeps an empty Type, and whoever checks the configuration says so.
func descriptionIn(m *pb.DescribeResponse) ports.Description {
	d := ports.Description{Kind: m.Kind, Version: m.Version, Summary: m.Summary, Powers: m.Powers, Slots: int(max(m.Slots, 0)), Contained: m.Contained}
	for _, f := range m.Families {
		if family, known := families.in[f]; known {
			d.Families = append(d.Families, family)
		}
	}
	for _, o := range m.Options {
		d.Options = append(d.Options, ports.Option{
			Name: o.Name, Type: optionTypes.in[o.Type], Default: o.Default, Required: o.Required, Secret: o.Secret,
			Help: o.Help, Example: o.Example,
		})
	}
	for _, o := range m.OptOuts {
		d.OptOuts = append(d.OptOuts, ports.OptOut{Of: o.Of, Reason: o.Reason})
	}
	return d
}

func standingOut(s ports.Standing) *pb.StandResponse {
	m := &pb.StandResponse{StoreId: s.StoreID, Empty: s.Empty, Nonce: s.Nonce, Early: int64(s.Early)}
	for _, f := range ports.Families {
		if mark, has := s.Marks[f]; has {
			m.Marks = append(m.Marks, &pb.Mark{Family: families.out[f], Epoch: mark.Epoch, Seq: mark.Seq})
		}
	}
	return m
}

func standingIn(m *pb.StandResponse) ports.Standing {
	s := ports.Standing{StoreID: m.StoreId, Empty: m.Empty, Nonce: m.Nonce, Marks: map[ports.Family]ports.Mark{}, Early: int(m.Early)}
	for _, mark := range m.Marks {
		if f, known := families.in[mark.Family]; known {
			s.Marks[f] = ports.Mark{Epoch: mark.Epoch, Seq: mark.Seq}
		}
	}
	return s
}

func openingOut(o ports.Opening) *pb.OpenRequest {
	m := &pb.OpenRequest{HostId: o.HostID, Nonce: o.Nonce, Next: o.Next, Retention: durationpb.New(o.Retention)}
	for _, f := range ports.Families {
		if epoch, has := o.Epochs[f]; has {
			m.Epochs = append(m.Epochs, &pb.Epoch{Family: families.out[f], Id: epoch.ID, From: epoch.From})
		}
		if seq, has := o.Resume[f]; has {
			m.Resume = append(m.Resume, &pb.Resume{Family: families.out[f], Seq: seq})
		}
	}
	return m
}

func openingIn(m *pb.OpenRequest) ports.Opening {
	o := ports.Opening{
		HostID: m.HostId, Nonce: m.Nonce, Next: m.Next, Retention: m.Retention.AsDuration(),
		Epochs: map[ports.Family]ports.Epoch{}, Resume: map[ports.Family]uint64{},
	}
	for _, epoch := range m.Epochs {
		o.Epochs[families.in[epoch.Family]] = ports.Epoch{ID: epoch.Id, From: epoch.From}
	}
	for _, resume := range m.Resume {
		o.Resume[families.in[resume.Family]] = resume.Seq
	}
	return o
}

func surveyOut(s ports.Survey) *pb.SurveyResponse {
	m := &pb.SurveyResponse{Bytes: s.Bytes, Partial: s.Partial}
	for _, k := range ports.Kinds {
		if count, has := s.Counts[k]; has {
			m.Counts = append(m.Counts, &pb.Count{Kind: kinds.out[k], Count: count})
		}
	}
	return m
}

func surveyIn(m *pb.SurveyResponse) ports.Survey {
	s := ports.Survey{Bytes: m.Bytes, Partial: m.Partial, Counts: map[ports.Kind]int64{}}
	for _, c := range m.Counts {
		if kind, known := kinds.in[c.Kind]; known {
			s.Counts[kind] = c.Count
		}
	}
	return s
}
