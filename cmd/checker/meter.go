package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// quiet is how long work may take before a person wants to see that it goes on.
const quiet = 2 * time.Second

// meter shows progress to a person: on a terminal only, after a while only.
type meter struct {
	w     io.Writer
	what  string
	total int64 // 0: unknown
	start time.Time
	bar   *progressbar.ProgressBar
}

func newMeter(w io.Writer, what string, total int) *meter {
	if !isTerminal(w) {
		w = nil
	}
	return &meter{w: w, what: what, total: int64(total), start: time.Now()}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// set says that n of the total is done.
func (m *meter) set(n int) {
	if m.w == nil || m.bar == nil && time.Since(m.start) < quiet {
		return
	}
	if m.bar == nil {
		total := m.total
		if total == 0 {
			total = -1
		}
		m.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(m.w),
			progressbar.OptionSetDescription(m.what), progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	_ = m.bar.Set(n) // a terminal that is gone is no reason to stop
}

// clear makes room for a line of output.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}
