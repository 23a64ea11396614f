package interop;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Date;
import java.util.TreeMap;
import org.springframework.batch.core.Job;
import org.springframework.batch.core.JobExecution;
import org.springframework.batch.core.JobParameters;
import org.springframework.batch.core.Step;
import org.springframework.batch.core.StepExecution;
import org.springframework.batch.core.configuration.support.MapJobRegistry;
import org.springframework.batch.core.configuration.support.ReferenceJobFactory;
import org.springframework.batch.core.explore.JobExplorer;
import org.springframework.batch.core.explore.support.JobExplorerFactoryBean;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.launch.support.SimpleJobLauncher;
import org.springframework.batch.core.launch.support.SimpleJobOperator;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.support.JobRepositoryFactoryBean;
import org.springframework.batch.core.step.builder.SimpleStepBuilder;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.core.step.tasklet.Tasklet;

/** A repository as an application of Spring Batch 4.3 has it: nothing is set that has a default. */
final class Repository extends Database {
    static final String MIGRATION = "4.3";

    final JobRepository jobs;
    final JobExplorer explorer;
    private final MapJobRegistry registry = new MapJobRegistry();
    private final SimpleJobLauncher launcher = new SimpleJobLauncher();
    private final SimpleJobOperator operator = new SimpleJobOperator();

    /** With {@code opaque} contexts are serialized by Java, as by default since Spring Batch 5. */
    Repository(String url, boolean opaque) throws Exception {
        super(url);
        JobRepositoryFactoryBean makesRepository = new JobRepositoryFactoryBean();
        makesRepository.setDataSource(database);
        makesRepository.setTransactionManager(transactions);
        JobExplorerFactoryBean makesExplorer = new JobExplorerFactoryBean();
        makesExplorer.setDataSource(database);
        if (opaque) {
            makesRepository.setSerializer(new Opaque());
            makesExplorer.setSerializer(new Opaque());
        }
        makesRepository.afterPropertiesSet();
        jobs = makesRepository.getObject();
        makesExplorer.afterPropertiesSet();
        explorer = makesExplorer.getObject();

        for (Job job : new Jobs(this).all()) {
            registry.register(new ReferenceJobFactory(job));
        }
        launcher.setJobRepository(jobs);
        launcher.afterPropertiesSet();
        operator.setJobRepository(jobs);
        operator.setJobExplorer(explorer);
        operator.setJobLauncher(launcher);
        operator.setJobRegistry(registry);
        operator.afterPropertiesSet();
    }

    JobExecution run(String job, JobParameters parameters) throws Exception {
        return launcher.run(registry.getJob(job), parameters);
    }

    JobExecution restart(long execution) throws Exception {
        return explorer.getJobExecution(operator.restart(execution));
    }

    boolean stop(long execution) throws Exception {
        return operator.stop(execution);
    }

    JobBuilder job(String name) {
        return new JobBuilder(name).repository(jobs);
    }

    Step tasklet(String name, Tasklet tasklet) {
        return step(name).tasklet(tasklet).build();
    }

    <I, O> SimpleStepBuilder<I, O> chunk(String name, int size) {
        return step(name).chunk(size);
    }

    private StepBuilder step(String name) {
        return new StepBuilder(name).repository(jobs).transactionManager(transactions);
    }

    static void show(JobParameters parameters, ArrayNode shown) {
        new TreeMap<>(parameters.getParameters()).forEach((name, one) -> shown.add(Parameters.shown(name, one)));
    }

    static String definition(JobExecution execution) {
        return execution.getJobConfigurationName();
    }

    /** Returns nothing: Spring Batch 5 added the column. */
    static Date created(StepExecution step) {
        return null;
    }
}
