package interop;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.LocalDateTime;
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
import org.springframework.batch.core.launch.support.SimpleJobOperator;
import org.springframework.batch.core.launch.support.TaskExecutorJobLauncher;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.dao.Jackson2ExecutionContextStringSerializer;
import org.springframework.batch.core.repository.support.JobRepositoryFactoryBean;
import org.springframework.batch.core.step.builder.SimpleStepBuilder;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.core.step.tasklet.Tasklet;

/** A repository as an application of Spring Batch 5 has it: nothing is set that has a default, except the serializer. */
final class Repository extends Database {
    static final String MIGRATION = "5.0";

    final JobRepository jobs;
    final JobExplorer explorer;
    private final MapJobRegistry registry = new MapJobRegistry();
    private final TaskExecutorJobLauncher launcher = new TaskExecutorJobLauncher();
    private final SimpleJobOperator operator = new SimpleJobOperator();

    /** With {@code opaque} contexts are serialized by default: Base64 of Java's serialization. Else they are JSON. */
    Repository(String url, boolean opaque) throws Exception {
        super(url);
        JobRepositoryFactoryBean makesRepository = new JobRepositoryFactoryBean();
        makesRepository.setDataSource(database);
        makesRepository.setTransactionManager(transactions);
        JobExplorerFactoryBean makesExplorer = new JobExplorerFactoryBean();
        makesExplorer.setDataSource(database);
        makesExplorer.setTransactionManager(transactions);
        if (!opaque) {
            makesRepository.setSerializer(new Jackson2ExecutionContextStringSerializer());
            makesExplorer.setSerializer(new Jackson2ExecutionContextStringSerializer());
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
        return new JobBuilder(name, jobs);
    }

    Step tasklet(String name, Tasklet tasklet) {
        return new StepBuilder(name, jobs).tasklet(tasklet, transactions).build();
    }

    <I, O> SimpleStepBuilder<I, O> chunk(String name, int size) {
        return new StepBuilder(name, jobs).chunk(size, transactions);
    }

    static void show(JobParameters parameters, ArrayNode shown) {
        new TreeMap<>(parameters.getParameters())
                .forEach((name, one) ->
                        shown.add(Parameters.shown(name, one.getType(), one.getValue(), one.isIdentifying())));
    }

    /** Returns nothing: Spring Batch 5 dropped the column. */
    static String definition(JobExecution execution) {
        return null;
    }

    static LocalDateTime created(StepExecution step) {
        return step.getCreateTime();
    }
}
