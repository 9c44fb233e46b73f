package integration
import ("testing";"database/sql";"time";"github.com/sqlbulkhead/sqlbulkhead/internal/testserver")
func TestZZ(t *testing.T){
 dsn:=testserver.MariaDB(t)
 db,_:=sql.Open("mysql",dsn+"?max_statement_time=0.15")
 defer db.Close()
 db.SetMaxOpenConns(1)
 for _,q:=range []string{mariadb.slow,"SELECT 1 FROM seq_1_to_50 WHERE SLEEP(0.1) = 0","DO SLEEP(3)"} {
 for i:=0;i<3;i++{
 b:=time.Now(); _,err:=db.Exec(q); t.Log("exec",time.Since(b),err)
 s,err:=db.Prepare(q); if err!=nil{t.Fatal(err)}
 b=time.Now(); _,err=s.Exec(); t.Log("stmt exec",time.Since(b),err)
 b=time.Now(); err=allRows(s.Query()); t.Log("stmt query",time.Since(b),err)
 s.Close()
 }}
}
