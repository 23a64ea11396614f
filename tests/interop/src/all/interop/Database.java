package interop;

import javax.sql.DataSource;
import org.springframework.batch.support.DatabaseType;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.Resource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.transaction.PlatformTransactionManager;

/** The database of a repository. */
class Database {
    final DataSource database;
    final PlatformTransactionManager transactions;

    Database(String url) {
        database = new DriverManagerDataSource(url);
        transactions = new DataSourceTransactionManager(database);
    }

    /** Creates the tables. */
    void make() throws Exception {
        execute("schema-");
    }

    /** Migrates the tables to this version of Spring Batch. */
    void migrate(String version) throws Exception {
        execute("migration/" + version + "/migration-");
    }

    long time(String query) {
        return new JdbcTemplate(database).queryForObject(query, (row, number) -> row.getTimestamp(1)).getTime();
    }

    /** Executes Spring Batch's script for this database, which for MariaDB may be that for MySQL. */
    private void execute(String prefix) throws Exception {
        String name = DatabaseType.fromMetaData(database).name().toLowerCase().replace("postgres", "postgresql");
        Resource script = script(prefix + name);
        if (name.equals("mariadb") && !script.exists()) {
            script = script(prefix + "mysql");
        }
        new ResourceDatabasePopulator(script).execute(database);
    }

    private static Resource script(String name) {
        return new ClassPathResource("org/springframework/batch/core/" + name + ".sql");
    }
}
