package place

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// oracle: MLComputePlan's tables of the same programs: preferred devices, what supports an op, and each op's share of the expected
// cost, from the texts' records and from the programs alone.
func TestPlacementAgainstPlanTables(t *testing.T) {
	folder := shareddata.Dir(t, "coreml/miltext")
	for table, texts := range map[string]string{"plan_ctx.tsv": "analytics_ctx", "plan_iso_cpune.tsv": "analytics_iso"} {
		file, err := os.Open(filepath.Join(folder, table))
		require.NoError(t, err)
		defer file.Close()
		r := csv.NewReader(file)
		r.Comma, r.LazyQuotes = '\t', true
		rows, err := r.ReadAll()
		require.NoError(t, err)
		byCase := map[string][][]string{}
		for _, row := range rows[1:] {
			byCase[row[0]] = append(byCase[row[0]], row)
		}
		right, supported, all := 0, 0, 0
		for name, rows := range byCase {
			x := readTexts(t, []string{filepath.Join(folder, texts, name+".mil")})[0]
			placed, sum := Predict(x.f, Options{}), 0.0
			for _, record := range x.records {
				sum += record.Seconds[record.Selected]
			}
			i := 0
			for k, record := range x.records {
				if carries(record.Op.Type) {
					continue
				}
				row, at := rows[i], placed.Ops[k]
				i++
				all++
				require.True(t, row[2] == record.Op.Type || strings.HasSuffix(row[2], "."+record.Op.Type), "%s: %s", name, row[2])
				require.Equal(t, record.Selected.Unit(), row[4], "%s %s", name, row[3])
				weight, err := strconv.ParseFloat(row[6], 64)
				require.NoError(t, err)
				require.InDelta(t, weight, record.Seconds[record.Selected]/sum, 1e-4, "%s %s", name, row[3])
				if at.Backend.Unit() == row[4] {
					right++
				}
				if (at.Refusal == nil) == strings.Contains(row[5], "ANE") {
					supported++
				}
			}
			require.Equal(t, len(rows), i, name)
		}
		t.Logf("%s: %d of %d ops on the preferred device, %d with the devices that support them", table, right, all, supported)
		require.GreaterOrEqual(t, float64(right), 0.9*float64(all))
		require.GreaterOrEqual(t, float64(supported), 0.9*float64(all))
	}
}
