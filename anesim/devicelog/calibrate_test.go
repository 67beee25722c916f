package devicelog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

// oracle: a pasted log of the phone's four-chunk session gives the rows of the measurements file, and calibrates a device.
func TestLogCalibrates(t *testing.T) {
	log := "[Load] 4-chunk decode\n" + cold + strings.Repeat("[Profile] emb=0.5ms mask=0.2ms | c1=5.9 c2=6.8 c3=8.1 c4=10.4 (sum=31.2ms) | predict=31.4ms total=31.8ms (31.4 tok/s)\n", 2)
	s, err := Read("paste.log", []byte(log), phone)
	require.NoError(t, err)

	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e2b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	all, err := devices.All()
	require.NoError(t, err)
	models := map[string]*chunking.Model{"gemma-4-e2b": m}
	c, err := anesim.Calibrate(s.Measurements, anesim.Options{Devices: all, Models: models})
	require.NoError(t, err)
	require.Equal(t, 4, c.Fit.ChunkRaw.N)
	require.Len(t, c.Devices, 1)
	require.Equal(t, "iphone17pro", c.Devices[0].Name)

	var shots []anesim.Measurement
	for _, row := range s.Measurements {
		if row.Component >= "1" && row.Component <= "4" {
			shots = append(shots, row)
		}
	}
	mac, err := devices.Load("mac")
	require.NoError(t, err)
	tr, err := anesim.TransferTo(all[0], mac, anesim.OtherDevice, shots, models)
	require.NoError(t, err)
	require.Less(t, float64(tr.Fit.Max), 5.0)
}
