package model

// purgeToday are the changes of every line that is kept up: the stable trees
// took them all.
var purgeToday = []string{
	"tw-row-block", "tw-row-inside", "tw-skip", "tw-own-tables", "tw-own-always", "tw-always", "tw-one-pass", "tw-exclusive",
}

// timeWaitGenerations are the kernel lines as the teardown of namespaces has them.
var timeWaitGenerations = []Generation{
	{Name: "4.9", Release: "4.9.337", Doc: "two walks of the table for every batch"},
	{Name: "5.4", Release: "5.4.302", Doc: "as 4.9"},
	{Name: "5.15", Release: "5.15.196", Doc: "as 4.9"},
	{
		Name: "6.1", Release: "6.1.192", Changes: purgeToday,
		Doc: "as Debian ships it, with the repairs of later lines: one walk, never left out; tables of a namespace's own",
	},
	{Name: "6.12", Release: "6.12.117", Changes: purgeToday, Doc: "as 6.1"},
	{Name: "6.18", Release: "6.18.44", Changes: purgeToday, Doc: "as 6.1"},
}

// Era is one form that the teardown of namespaces has had.
type Era struct {
	Name   string // in words, fit for a table's row
	Since  string
	Kernel string // the profile that has it
}

// Eras lists the forms of the teardown that mainline has had, oldest first, and
// the proposed skip in its place.
func Eras() []Era {
	return []Era{
		{"two walks, always", "before 6.1", "5.15"},
		{"the skip as proposed", "September 2022", "5.15+tw-row-block+tw-skip-proposed"},
		{"the skip as merged", "6.1-rc1", "6.1-tw-own-always-tw-always-tw-one-pass-tw-exclusive"},
		{"own tables always", "6.1", "6.1-tw-always-tw-one-pass-tw-exclusive"},
		{"no skip", "6.9", "6.1-tw-one-pass-tw-exclusive"},
		{"one pass", "6.10", "6.1-tw-exclusive"},
		{"exits exclusive", "6.11", "6.18"},
	}
}
