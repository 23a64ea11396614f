package interop;

import java.util.Arrays;
import javax.sql.DataSource;
import org.springframework.batch.core.Job;
import org.springframework.batch.core.configuration.support.MapJobRegistry;
import org.springframework.batch.core.configuration.support.ReferenceJobFactory;
import org.springframework.batch.core.explore.JobExplorer;
import org.springframework.batch.core.explore.support.JobExplorerFactoryBean;
import org.springframework.batch.core.launch.support.SimpleJobLauncher;
import org.springframework.batch.core.launch.support.SimpleJobOperator;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.support.JobRepositoryFactoryBean;
import org.springframework.batch.support.DatabaseType;
import org.springframework.core.io.ClassPathResource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.transaction.PlatformTransactionManager;

/** A repository as an application of Spring Batch has it: nothing is set that has a default. */
final class Repository {
    private final DataSource database;
    private final MapJobRegistry registry = new MapJobRegistry();
    final JobRepository jobs;
    final JobExplorer explorer;
    final SimpleJobLauncher launcher = new SimpleJobLauncher();
    final SimpleJobOperator operator = new SimpleJobOperator();

    /** With {@code opaque} contexts are serialized by Java, as by default since Spring Batch 5. */
    Repository(String url, boolean opaque) throws Exception {
        database = new DriverManagerDataSource(url);
        PlatformTransactionManager transactions = new DataSourceTransactionManager(database);

        JobRepositoryFactoryBean makesRepository = new JobRepositoryFactoryBean();
        makesRepository.setDataSource(database);
        makesRepository.setTransactionManager(transactions);
        if (opaque) {
            makesRepository.setSerializer(new Opaque());
        }
        makesRepository.afterPropertiesSet();
        jobs = makesRepository.getObject();

        JobExplorerFactoryBean makesExplorer = new JobExplorerFactoryBean();
        makesExplorer.setDataSource(database);
        if (opaque) {
            makesExplorer.setSerializer(new Opaque());
        }
        makesExplorer.afterPropertiesSet();
        explorer = makesExplorer.getObject();

        launcher.setJobRepository(jobs);
        launcher.afterPropertiesSet();

        for (Job job : Arrays.asList(new Jobs(jobs, transactions).all())) {
            registry.register(new ReferenceJobFactory(job));
        }
        operator.setJobRepository(jobs);
        operator.setJobExplorer(explorer);
        operator.setJobLauncher(launcher);
        operator.setJobRegistry(registry);
        operator.afterPropertiesSet();
    }

    Job job(String name) throws Exception {
        return registry.getJob(name);
    }

    void make() throws Exception {
        String name = DatabaseType.fromMetaData(database).name().toLowerCase();
        String script = "org/springframework/batch/core/schema-" + name.replace("postgres", "postgresql") + ".sql";
        new ResourceDatabasePopulator(new ClassPathResource(script)).execute(database);
    }

    long time(String query) {
        return new JdbcTemplate(database).queryForObject(query, (row, number) -> row.getTimestamp(1)).getTime();
    }
}
