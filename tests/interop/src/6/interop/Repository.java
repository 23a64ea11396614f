package interop;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.LocalDateTime;
import java.util.Comparator;
import org.springframework.batch.core.configuration.support.MapJobRegistry;
import org.springframework.batch.core.job.Job;
import org.springframework.batch.core.job.JobExecution;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.job.parameters.JobParameter;
import org.springframework.batch.core.job.parameters.JobParameters;
import org.springframework.batch.core.launch.JobOperator;
import org.springframework.batch.core.launch.support.JobOperatorFactoryBean;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.dao.JacksonExecutionContextStringSerializer;
import org.springframework.batch.core.repository.support.JdbcJobRepositoryFactoryBean;
import org.springframework.batch.core.step.Step;
import org.springframework.batch.core.step.StepExecution;
import org.springframework.batch.core.step.builder.ChunkOrientedStepBuilder;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.core.step.tasklet.Tasklet;

/** A repository as an application of Spring Batch 6 has it: nothing is set that has a default, except the serializer. */
final class Repository extends Database {
    static final String MIGRATION = "6.0";

    final JobRepository jobs;
    /** The repository reads too. */
    final JobRepository explorer;
    private final MapJobRegistry registry = new MapJobRegistry();
    private final JobOperator operator;

    /** With {@code opaque} contexts are serialized by default: Base64 of Java's serialization. Else they are JSON. */
    Repository(String url, boolean opaque) throws Exception {
        super(url);
        JdbcJobRepositoryFactoryBean makesRepository = new JdbcJobRepositoryFactoryBean();
        makesRepository.setDataSource(database);
        makesRepository.setTransactionManager(transactions);
        if (!opaque) {
            makesRepository.setSerializer(new JacksonExecutionContextStringSerializer());
        }
        makesRepository.afterPropertiesSet();
        jobs = makesRepository.getObject();
        explorer = jobs;

        for (Job job : new Jobs(this).all()) {
            registry.register(job);
        }
        JobOperatorFactoryBean makesOperator = new JobOperatorFactoryBean();
        makesOperator.setJobRepository(jobs);
        makesOperator.setJobRegistry(registry);
        makesOperator.setTransactionManager(transactions);
        makesOperator.afterPropertiesSet();
        operator = makesOperator.getObject();
    }

    JobExecution run(String job, JobParameters parameters) throws Exception {
        return operator.start(registry.getJob(job), parameters);
    }

    JobExecution restart(long execution) throws Exception {
        return operator.restart(jobs.getJobExecution(execution));
    }

    boolean stop(long execution) throws Exception {
        return operator.stop(jobs.getJobExecution(execution));
    }

    JobBuilder job(String name) {
        return new JobBuilder(name, jobs);
    }

    Step tasklet(String name, Tasklet tasklet) {
        return new StepBuilder(name, jobs).tasklet(tasklet, transactions).build();
    }

    <I, O> ChunkOrientedStepBuilder<I, O> chunk(String name, int size) {
        return new StepBuilder(name, jobs).<I, O>chunk(size).transactionManager(transactions);
    }

    static void show(JobParameters parameters, ArrayNode shown) {
        parameters.parameters().stream()
                .sorted(Comparator.comparing(JobParameter::name))
                .forEach(one -> shown.add(Parameters.shown(one.name(), one.type(), one.value(), one.identifying())));
    }

    /** Returns nothing: Spring Batch 5 dropped the column. */
    static String definition(JobExecution execution) {
        return null;
    }

    static LocalDateTime created(StepExecution step) {
        return step.getCreateTime();
    }
}
